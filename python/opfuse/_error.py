"""The one exception of opfuse."""


class Error(RuntimeError):
    """What went wrong, where, and what to do about it. str() is the whole diagnostic as the command line prints it."""

    code: str  #: stable, "E0203"; docs/errors.md
    name: str  #: stable, "channel_mismatch"
    message: str  #: one sentence
    file: str  #: model file; empty when unknown, like the fields below
    node: str  #: name of the node in the model
    op: str  #: "Conv, opset 17"
    operands: list[str]
    during: str  #: the step of the compiler
    hint: str  #: what to do

    def __init__(self, message: str, *, code: str = "E7001", name: str = "internal", file: str = "", node: str = "",
                 op: str = "", operands: list[str] | None = None, during: str = "", hint: str = "",
                 text: str = "") -> None:
        super().__init__(text or message)
        self.message, self.code, self.name, self.file, self.node = message, code, name, file, node
        self.op, self.operands, self.during, self.hint = op, operands or [], during, hint
