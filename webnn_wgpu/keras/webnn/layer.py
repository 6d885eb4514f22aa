"""The base class of Keras's layers on this backend. It adds nothing."""


class WebNNLayer:
    """The base class of layers."""


OpenvinoLayer = WebNNLayer
"""The name that Keras imports. See `webnn_wgpu.keras.installation`."""
