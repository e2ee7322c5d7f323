"""opfuse as an execution provider of ONNX Runtime.

    import onnxruntime, onnxruntime_ep_opfuse
    onnxruntime_ep_opfuse.register()
    session = onnxruntime.InferenceSession("m.onnx", onnxruntime_ep_opfuse.session_options(threads=2))
"""
import importlib.metadata
import pathlib

try:
    __version__ = importlib.metadata.version("onnxruntime-ep-opfuse")
except importlib.metadata.PackageNotFoundError:  # in the build tree
    __version__ = ""

EP_NAME = "OpfuseExecutionProvider"


def get_library_path():
    """The plug-in, as onnxruntime.register_execution_provider_library takes it."""
    return str(pathlib.Path(__file__).resolve().parent / "libonnxruntime_ep_opfuse.so")


def get_ep_name():
    return EP_NAME


def get_ep_names():
    return [EP_NAME]


def register(name=EP_NAME):
    """Makes the provider known to ONNX Runtime in this process; further calls do nothing."""
    import onnxruntime

    if not devices():
        onnxruntime.register_execution_provider_library(name, get_library_path())


def devices():
    """The devices that opfuse runs on: this machine's processor, once the provider is registered."""
    import onnxruntime

    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == EP_NAME]


def session_options(options=None, **settings):
    """SessionOptions with opfuse first and ONNX Runtime's own kernels behind it. `settings`: the provider's options."""
    import onnxruntime

    register()
    options = options or onnxruntime.SessionOptions()
    options.add_provider_for_devices(devices(), {key: str(value) for key, value in settings.items()})
    return options
