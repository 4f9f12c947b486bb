"""For each rule: sources that break it, and sources that come close and do not."""

from __future__ import annotations

from tests.policy.samples import CLEAN, changed

BODY = "        return ext.scale(x, y, self.scale)\n"
INIT = "    def __init__(self, width, scale=2.0):\n"
CALL_END = '    functions=["scale"],\n)\n'
PROTOTYPE = "torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale);"


def before(statement: str) -> str:
    """CLEAN with a statement before the extension."""
    return changed("cuda_source = ", f"{statement}\n\ncuda_source = ")


def in_forward(statement: str) -> str:
    return changed(BODY, f"        {statement}\n{BODY}")


def init(line: str) -> str:
    return changed(INIT, f"    {line}\n")


def forward(line: str) -> str:
    return changed("    def forward(self, x, y):\n", f"    {line}\n")


def native(line: str) -> str:
    return changed("    int n = x.numel();", f"    int n = x.numel();\n    {line}")


NESTED = CLEAN.replace("class ModelNew", "def make():\n  class ModelNew")
RENAMED = changed("class ModelNew", "class Fast")
NO_INIT = changed(CLEAN[CLEAN.index("    def __init__") : CLEAN.index("    def forward")], "")

EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "syntax_error": ([CLEAN + "def f(:\n", CLEAN + "\0"], [CLEAN]),
    "missing_model_new": (
        [
            RENAMED,
            RENAMED + "ModelNew = make(Fast)\n",
            "x = 1\n",
            changed("class ModelNew", "if __name__ == '__main__':\n  class ModelNew"),
        ],
        [RENAMED + "ModelNew = Fast\n", changed("class ModelNew", "Model = None\nclass ModelNew")],
    ),
    "missing_forward": (
        [changed("def forward", "def call")],
        [
            CLEAN,
            changed("def forward(self, x, y):\n" + BODY, "forward = ext.scale\n"),
            changed("def forward", "def call").replace("ModelNew(nn.Module)", "ModelNew(Other)"),
        ],
    ),
    "init_signature": (
        [
            init("def __init__(self):"),
            init("def __init__(self, width, scale, depth):"),
            init("def __init__(self, scale, width):"),
            init("def __init__(self, width, scale=2.0, *, depth):"),
            NO_INIT,
        ],
        [
            init("def __init__(self, width, scale=2.0, depth=3):"),
            init("def __init__(self, *args, **kwargs):"),
            init("def __init__(self, width):"),
            init("def __init__(self, a, b=1):"),
            NO_INIT.replace("(nn.Module)", "(Base)"),
        ],
    ),
    "forward_signature": (
        [
            forward("def forward(self, x):"),
            forward("def forward(self, y, x):"),
            forward("def forward(self, x, y, z):"),
            forward("def forward(self, x, *, y):"),
        ],
        [
            forward("def forward(self, x, y, z=None):"),
            forward("def forward(self, *inputs):"),
            forward("def forward(self, a, b):"),
        ],
    ),
    "signature_differs": (
        [forward("def forward(self, a, b):"), init("def __init__(self, width):")],
        [CLEAN, forward("def forward(self, x, y, z=None):")],
    ),
    "variadic_signature": (
        [forward("def forward(self, *inputs):"), init("def __init__(self, *args, **kwargs):")],
        [CLEAN],
    ),
    "missing_import": (
        [
            changed("import torch.nn as nn\n", ""),
            changed("from torch.utils.cpp_extension import load_inline\n", ""),
            in_forward("x = F.relu(x)"),
        ],
        [
            CLEAN,
            changed("import torch.nn as nn\n", "from torch import *\n"),
            before("for i in range(3): print(i)"),
        ],
    ),
    "redefined_problem": (
        [CLEAN + "\ndef get_inputs():\n    return []\n", CLEAN + "\nclass Model(nn.Module):\n    pass\n"],
        [CLEAN, before("class Helper:\n    def get_inputs(self):\n        return []")],
    ),
    "test_code": (
        [
            CLEAN + "\nmodel = ModelNew(1)\n",
            CLEAN + '\nif __name__ == "__main__":\n    pass\n',
            CLEAN + "\nprint('ok')\n",
        ],
        [CLEAN, before("if __name__ != '__main__':\n    N = 1")],
    ),
    "no_inline_kernel": (
        [changed("__global__ ", ""), changed("__global__ void", "// __global__\nvoid"), "import torch\n"],
        [CLEAN, changed('r"""', 'f"""').replace("{", "{{").replace("}", "}}")],
    ),
    "missing_cpp_sources": (
        [
            changed(f'    cpp_sources="{PROTOTYPE}",\n', ""),
            changed(PROTOTYPE, ""),
            changed(f'"{PROTOTYPE}"', "[]"),
        ],
        [
            CLEAN,
            changed(f'    cpp_sources="{PROTOTYPE}",\n', "    **options,\n"),
            changed('    functions=["scale"],\n', "").replace(PROTOTYPE, ""),
        ],
    ),
    "unmatched_prototype": (
        [
            changed(PROTOTYPE, "torch::Tensor scale(torch::Tensor x);"),
            changed(PROTOTYPE, "torch::Tensor other();"),
            changed('functions=["scale"]', 'functions={"scale": "", "missing": ""}'),
            changed(
                "torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale) {",
                "torch::Tensor twice(torch::Tensor x) {",
            ),
        ],
        [
            CLEAN,
            changed(PROTOTYPE, "at::Tensor scale(at::Tensor, at::Tensor y, const double = 1.0);"),
            changed(PROTOTYPE, "#define D(x) x"),
            changed('["scale"]', "NAMES"),
        ],
    ),
    "broken_c_string": (
        [native('printf("x\n");')],
        [native(r'printf("x\n \"quoted\" //");'), native("char c = '\"';")],
    ),
    "doubled_braces": (
        [CLEAN.replace("{", "{{").replace("}", "}}")],
        [
            CLEAN,
            native("int a[1][1] = {{1}};"),
            CLEAN.replace('r"""', 'f"""').replace("{", "{{").replace("}", "}}"),
        ],
    ),
    "forbidden_import": (
        [
            before(f"import {name}")
            for name in (
                "socket",
                "urllib.request",
                "subprocess as s",
                "ctypes",
                "threading",
                "gc",
                "inspect",
                "pickle",
                "signal",
                "torch.multiprocessing",
            )
        ]
        + [
            before("from torch import hub"),
            before("from importlib import reload"),
            before("torch.hub.list('a')"),
        ],
        [
            CLEAN,
            before("import math, os, sys, time"),
            before("from socketless import x"),
            before("socket = 1"),
        ],
    ),
    "forbidden_call": (
        [
            before("import sys\nf = sys._getframe(1)"),
            before("import os as o\no.system('ls')"),
            before("from os import _exit as e\ne(0)"),
            before("torch.load('x')"),
        ],
        [
            before("import os\np = os.path.join('a', 'b')"),
            before("import sys\nv = sys.version"),
            in_forward("self.system(x)"),
        ],
    ),
    "forbidden_native_call": (
        [native("std::thread t(f);"), native('system("ls");'), native('fopen("/proc/self/mem", "r");')],
        [native("// system(1) std::thread"), native("my_system(1); a.fork(2);")],
    ),
    "environment_write": (
        [before("import os\nos.environ['A'] = 'b'"), before("from os import environ\nenviron.update(A='b')")],
        [before("import os\na = os.environ['A']"), before("environ = {}\nenviron['A'] = 'b'")],
    ),
    "dynamic_code": (
        [before("exec('x = 1')"), before("f = eval('1')"), before("m = __import__('os')")],
        [in_forward("self.eval()"), before("import re\np = re.compile('a')"), before("m = torch.compile(f)")],
    ),
    "patched_attribute": (
        [
            before("torch.allclose = lambda *a: True"),
            before("import time as t\nt.perf_counter = f"),
            before("torch.cuda.Event.elapsed_time = f"),
            before("setattr(torch, 'equal', f)"),
            before("import sys\nsys.modules['torch'] = f"),
            before("torch.a, b = 1, 2"),
        ],
        [
            in_forward("self.torch = 1"),
            before("config = {}\nconfig['a'] = 1"),
            before("torch.backends.cudnn.benchmark = True"),
            before("setattr(f, 'torch', 1)"),
        ],
    ),
    "global_flag": (
        [
            before("torch.backends.cuda.matmul.allow_tf32 = True"),
            before("torch.set_float32_matmul_precision('high')"),
            before("from torch import set_num_threads as s\ns(1)"),
            before("from torch.backends import cudnn\ncudnn.benchmark = True"),
        ],
        [before("ok = torch.backends.cudnn.is_available()"), in_forward("self.allow_tf32 = True")],
    ),
    "side_stream": (
        [
            in_forward("s = torch.cuda.Stream()"),
            before("g = torch.cuda.CUDAGraph()"),
            native("cudaStreamCreate(&s);"),
        ],
        [in_forward("s = torch.cuda.current_stream()"), native("// cudaStreamCreate(&s);")],
    ),
    "library_compute": (
        [
            in_forward("x = torch.matmul(x, y)"),
            in_forward("x = x @ y"),
            in_forward("x = nn.functional.relu(x)"),
            in_forward("x = x.softmax(1)"),
            changed("        self.scale = scale\n", "        self.layer = nn.Linear(1, 1)\n").replace(
                "return ext", "x = self.layer(x)\n        return ext"
            ),
        ],
        [
            in_forward("z = torch.empty_like(x)"),
            in_forward("x = ext.softmax(x)"),
            in_forward("x = x.contiguous()"),
            changed(
                "        self.scale = scale\n",
                "        self.scale = torch.sum(width)\n        self.layer = nn.Linear(1, 1)\n",
            ),
        ],
    ),
    "native_library_compute": (
        [native("z = at::matmul(x, y);"), native("cublasSgemm(h);")],
        [native("z = at::empty_like(x);"), native("// torch::matmul(x, y)")],
    ),
    "exception_fallback": (
        [in_forward("try:\n            x = ext.f(x)\n        except Exception:\n            x = y")],
        [
            in_forward("try:\n            x = ext.f(x)\n        finally:\n            y = x"),
            before("try:\n    import numpy\nexcept ImportError:\n    numpy = None"),
        ],
    ),
}
