"""Every file is either an entry or skipped with a reason; nothing loops or waits."""

from __future__ import annotations

import os

import pytest

from froda.images.listing import fingerprint, list_folder


def touch(path, contents=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path


def names(listing):
    return [entry.name for entry in listing.entries]


def reasons(listing):
    return {item.file: item.reason for item in listing.skipped}


def test_folders_of_the_first_level_are_the_classes(tmp_path):
    for name in ("mug/b.jpg", "mug/deep/a.jpg", "bike/c.jpg", "stray.jpg"):
        touch(tmp_path / name)
    listing = list_folder(tmp_path)
    assert names(listing) == ["bike/c.jpg", "mug/b.jpg", "mug/deep/a.jpg"]
    assert [entry.label for entry in listing.entries] == ["bike", "mug", "mug"]
    assert listing.classes == ("bike", "mug")
    assert reasons(listing) == {"stray.jpg": "lies outside of the class folders"}


def test_a_flat_folder_has_no_classes(tmp_path):
    for name in ("b.jpg", "a.png", "notes/read me.txt"):
        touch(tmp_path / name)
    listing = list_folder(tmp_path)
    assert not listing.is_labelled
    assert listing.classes == ()
    assert names(listing) == ["a.png", "b.jpg", "notes/read me.txt"]


def test_folders_can_be_told_not_to_be_classes(tmp_path):
    touch(tmp_path / "mug" / "b.jpg")
    touch(tmp_path / "stray.jpg")
    listing = list_folder(tmp_path, labelled=False)
    assert names(listing) == ["mug/b.jpg", "stray.jpg"]
    assert not listing.is_labelled


def test_the_order_is_that_of_the_bytes(tmp_path):
    for name in ("b.jpg", "a.jpg", "B.jpg", "é.jpg", "10.jpg", "9.jpg"):
        touch(tmp_path / name)
    assert names(list_folder(tmp_path)) == ["10.jpg", "9.jpg", "B.jpg", "a.jpg", "b.jpg", "é.jpg"]


def test_awkward_names_are_kept(tmp_path):
    awkward = ["a b.jpg", 'it\'s "q".jpg', "new\nline.jpg", "猫.jpg", os.fsdecode(b"\xff\xfe.jpg")]
    for name in awkward:
        touch(tmp_path / "c" / name)
    assert sorted(names(list_folder(tmp_path))) == sorted(f"c/{name}" for name in awkward)


def test_what_is_no_file_is_skipped_with_its_reason(tmp_path):
    touch(tmp_path / "c" / "empty.jpg", b"")
    touch(tmp_path / "c" / ".DS_Store")
    touch(tmp_path / ".git" / "x.jpg")
    touch(tmp_path / "c" / "good.jpg")
    os.mkfifo(tmp_path / "c" / "pipe.jpg")
    (tmp_path / "c" / "broken.jpg").symlink_to("nowhere")
    (tmp_path / "c" / "itself.jpg").symlink_to("itself.jpg")
    listing = list_folder(tmp_path)
    assert names(listing) == ["c/good.jpg"]
    found = reasons(listing)
    assert "symbolic link" in found.pop("c/itself.jpg")
    assert found == {
        ".git": "hidden",
        "c/.DS_Store": "hidden",
        "c/broken.jpg": "broken symbolic link",
        "c/empty.jpg": "empty file",
        "c/pipe.jpg": "neither a file nor a folder",
    }


def test_loops_of_links_end(tmp_path):
    root = tmp_path / "root"
    touch(root / "a" / "one.jpg")
    touch(root / "a" / "b" / "two.jpg")
    (root / "a" / "up").symlink_to("..")
    (root / "a" / "b" / "here").symlink_to(".")
    (root / "a" / "b" / "above").symlink_to(tmp_path)
    (root / "self").symlink_to(root)
    listing = list_folder(root)
    assert names(listing) == ["a/b/two.jpg", "a/one.jpg"]
    assert set(reasons(listing)) == {"a/up", "a/b/here", "a/b/above", "self"}
    assert all("seen already" in reason for reason in reasons(listing).values())


def test_links_between_folders_do_not_multiply_files(tmp_path):
    places = [tmp_path / "c" / str(number) for number in range(6)]
    for place in places:
        touch(place / "x.jpg")
        for other in places:
            (place / f"to {other.name}").symlink_to(other)
    assert len(list_folder(tmp_path).entries) == len(places)


def test_a_folder_of_links_to_folders_works(tmp_path):
    touch(tmp_path / "all" / "mug" / "a.jpg")
    touch(tmp_path / "all" / "bike" / "b.jpg")
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "mug").symlink_to(tmp_path / "all" / "mug")
    (tmp_path / "some" / "cup").symlink_to(tmp_path / "all" / "mug")
    assert names(list_folder(tmp_path / "some")) == ["cup/a.jpg", "mug/a.jpg"]


def test_fingerprint_sees_names_sizes_and_times(tmp_path):
    path = touch(tmp_path / "a.jpg")
    os.utime(path, ns=(1, 1))
    first = fingerprint(list_folder(tmp_path).entries)
    assert fingerprint(list_folder(tmp_path).entries) == first
    path.write_bytes(b"xy")
    os.utime(path, ns=(1, 1))
    second = fingerprint(list_folder(tmp_path).entries)
    os.utime(path, ns=(1, 2))
    third = fingerprint(list_folder(tmp_path).entries)
    path.rename(tmp_path / "b.jpg")
    assert len({first, second, third, fingerprint(list_folder(tmp_path).entries)}) == 4


@pytest.mark.parametrize("name", ["absent", "file"])
def test_what_is_no_folder_is_named(tmp_path, name):
    touch(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match=name):
        list_folder(tmp_path / name)
