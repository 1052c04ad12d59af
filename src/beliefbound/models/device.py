"""Where arrays of an accelerator live: a library that speaks the array API, a device of it, and a precision.

Needs `array-api-compat`, the extra `gpu`, and PyTorch, CuPy or JAX; arrays of NumPy, by which what runs on a device is
tested, need nothing.
"""

import importlib
import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError

DTYPES = ("float64", "float32")


class Device(NamedTuple):
    """Where arrays live: a namespace of the array API, and a device of it."""

    name: str
    library: str
    xp: Any
    device: Any
    dtype: str

    @classmethod
    def named(cls, name: Any, dtype: str = "float64") -> "Device":
        """`cuda`, `cuda:1` and `cpu` are PyTorch's; `cupy`, `jax` and `numpy` the libraries' default devices.

        >>> Device.named("numpy").library
        'numpy'
        """
        if dtype not in DTYPES:
            raise ParameterError(f"dtype is {dtype!r}; give one of: {', '.join(DTYPES)}")
        text = str(name)
        library = text if text in ("cupy", "jax", "numpy") else "torch"
        if library == "numpy":
            return cls(text, library, np, None, dtype)
        if library == "torch" and text.split(":")[0] not in ("cuda", "cpu"):
            raise ParameterError(f"device is {name!r}; give cuda, cuda:1, cpu, cupy, jax or numpy")
        try:
            module = importlib.import_module(library)
            xp = importlib.import_module(f"array_api_compat.{library}" if library != "jax" else "jax.numpy")
        except ImportError as cause:
            raise ParameterError(
                f"device {text!r} needs {cause.name or library}, which is not installed; add it with: "
                f"pip install 'beliefbound[gpu]' {library}"
            ) from None
        device = None
        if library == "torch":
            try:
                device = module.device(text)
            except RuntimeError:
                raise ParameterError(f"device is {name!r}; give cuda, or cuda:1 for the second card") from None
            if device.type == "cuda" and not module.cuda.is_available():
                raise ParameterError(f"device {text!r}: PyTorch sees no GPU here; leave the device out")
            if device.type == "cuda" and (device.index or 0) >= module.cuda.device_count():
                raise ParameterError(f"device {text!r}: there are {module.cuda.device_count()} GPUs, from cuda:0 on")
        if library == "jax":
            module.config.update("jax_enable_x64", True)
        return cls(text, library, xp, device, dtype)

    @property
    def called(self) -> tuple[str, str]:
        """By what it was named."""
        return self.name, self.dtype

    def free_bytes(self) -> float:
        """What can be allocated; without end where the library does not say."""
        if self.library == "torch" and self.device.type == "cuda":
            import torch

            unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
            return float(torch.cuda.mem_get_info(self.device)[0] + unused)
        if self.library == "cupy":
            import cupy

            return float(cupy.cuda.Device().mem_info[0])
        return math.inf

    def send(self, array: Any) -> Any:
        """An array of NumPy, on the device, in its precision if it holds floats; one that is there already stays."""
        if not isinstance(array, np.ndarray):
            return array.to(self.device, non_blocking=True) if self.library == "torch" else array
        array = np.ascontiguousarray(array)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype, copy=False)
        if self.library == "torch":
            import torch

            with warnings.catch_warnings():  # of arrays that cannot be written to: nobody writes to this one
                warnings.simplefilter("ignore", UserWarning)
                return torch.from_numpy(array).to(self.device)
        return self.xp.asarray(array)

    def hold(self, array: Any) -> Any:
        """An array of NumPy that will be sent again and again: where PyTorch can, in memory that the card reads by
        itself, which is several times as fast; else as it is."""
        array = np.ascontiguousarray(array, dtype=self.dtype)
        if self.library != "torch" or self.device.type != "cuda":
            return array
        import torch

        try:
            pinned = torch.empty(array.shape, dtype=getattr(torch, self.dtype), pin_memory=True)
        except RuntimeError:  # there is not enough of it
            return array
        pinned.numpy()[...] = array
        return pinned

    def fetch(self, array: Any) -> Any:
        """The same in NumPy, floats in double precision."""
        if self.library == "torch":
            array = array.detach().cpu().numpy()
        elif self.library == "cupy":
            array = array.get()
        array = np.asarray(array)
        return array.astype(np.float64) if array.dtype.kind == "f" else array
