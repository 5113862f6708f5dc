"""Every construct of the language, supported or not, as one small function each.

``docs/static_graph_syntax.md`` is written from this list (``python -m tests.capture.syntax_page``).
"""

from __future__ import annotations

SUPPORTED: dict[str, str] = {
    "if / elif / else on a tensor": """
def f(x):
    if x.sum() > 1:
        y = x * 2
    elif x.sum() > 0:
        y = x + 10
    else:
        y = -x
    return y
""",
    "early return under a tensor condition": """
def f(x):
    if x.sum() > 0:
        return x * 2
    y = x - 1
    return y
""",
    "conditional expression": """
def f(x):
    return x + 1 if x.mean() > 0 else x - 1
""",
    "and / or / not": """
def f(x):
    if x.sum() > 0 and not x[0] > 1 or x[1] < -1:
        return x * 3
    return x
""",
    "chained comparison": """
def f(x):
    if -1 < x.sum() < 1:
        return x * 0
    return x
""",
    "while on a tensor": """
def f(x):
    n = 0
    while x.sum() < 20 and n < 30:
        x = x * 1.5 + 1
        n += 1
    return x, n
""",
    "while with break and continue": """
def f(x):
    k = 0
    while True:
        k += 1
        if x.sum() > 5:
            break
        if x[0] < 0:
            x = x + 2
            continue
        x = x + 1
    return x, k
""",
    "while / else": """
def f(x):
    k = 0
    while k < 6:
        if x.sum() > 4:
            break
        x = x + 1
        k += 1
    else:
        x = x * 100
    return x
""",
    "return inside a loop": """
def f(x):
    for i in range(50):
        if x.sum() > 10:
            return x * -1
        x = x + i
    return x
""",
    "for / else with break": """
def f(x):
    for i in range(20):
        if x.sum() > 30:
            break
        x = x + i
    else:
        x = x * 0
    return x, i
""",
    "for over range of a tensor": """
def f(x):
    n = x.sum().astype("int32")
    s = x * 0
    for i in range(n):
        s = s + i
    return s
""",
    "for over list, tuple, enumerate, zip, reversed": """
def f(x):
    out = []
    for i, (a, b) in enumerate(zip([x, x + 1], reversed((x * 2, x * 3)))):
        out.append(a * i + b)
    return out
""",
    "for over a dict": """
def f(x):
    d = {"a": x, "b": x * 2}
    s = 0
    for k, v in d.items():
        s = s + v * len(k)
    return s
""",
    "for over the rows of a tensor": """
def f(x):
    s = 0
    for row in x.reshape(2, 1):
        s = s + row * 2
    return s
""",
    "nested loops and branches": """
def f(x):
    for i in range(3):
        for j in range(8):
            if x.sum() > 12:
                break
            if x[0] > x[1]:
                x = x + i
            else:
                x = x + j
    return x
""",
    "nested function and closure": """
def f(x):
    scale = 2
    def g(t, by=scale):
        if t.sum() > 0:
            return t * by
        return t
    return g(x) + g(-x, by=3)
""",
    "nonlocal": """
def f(x):
    total = x * 0
    def add(t):
        nonlocal total
        total = total + t
    add(x)
    add(x * 2)
    return total
""",
    "lambda": """
def f(x):
    g = lambda t, k=2: t * k if t.sum() > 0 else t
    return g(x)
""",
    "list, dict and set comprehension": """
def f(x):
    a = [x * i for i in range(4) if i % 2]
    b = {k: x + k for k in (1, 2)}
    c = {len(a), len(b)}
    return a, b, sum(c)
""",
    "generator expression": """
def f(x):
    return sum(x * i for i in range(4))
""",
    "unpacking and starred unpacking": """
def f(x):
    a, *b, (c, d) = x, x + 1, x + 2, (x + 3, x + 4)
    return a + c, b, d
""",
    "swap inside a branch": """
def f(x):
    a, b = x, x + 1
    if x.sum() > 0:
        a, b = b, a
    return a - b
""",
    "list building under a branch": """
def f(x):
    out = [x]
    if x.sum() > 0:
        out.append(x * 2)
    else:
        out.append(x * 3)
    return out
""",
    "list methods": """
def f(x):
    a = [x, x + 1]
    a.extend([x + 2])
    a.insert(0, x * 5)
    last = a.pop()
    a[0] = last
    a.reverse()
    del a[1]
    return a, len(a)
""",
    "slices and slice assignment of tensors": """
def f(x):
    y = x * 1
    y[0] = 5
    if x.sum() > 0:
        y[1:] = 7
    return y[::1], y[-1]
""",
    "augmented assignment": """
def f(x):
    x += 1
    x *= 2
    x -= 0.5
    return x
""",
    "assignment expression": """
def f(x):
    if (s := x.sum()) > 0:
        return x * s
    return x - s
""",
    "f-strings of Python values": """
def f(x):
    d = {f"k{i}": x * i for i in range(2)}
    return d[f"k{1}"]
""",
    "isinstance, len, shape arithmetic": """
def f(x):
    if isinstance(x, int):
        return x
    n = len(x) + x.shape[0] * x.ndim
    return x.reshape(x.shape[0], -1) * n
""",
    "defaults, *args, **kwargs, keyword-only": """
def f(x):
    def g(a, b=1, *rest, c=2, **more):
        return a * b + c + len(rest) + more.get("d", 0)
    return g(x, 2, 3, c=4, d=5)
""",
    "recursion with a bound": """
def f(x):
    def power(t, n):
        return t if n == 0 else power(t * 1.5, n - 1)
    return power(x, 20)
""",
    "assert and raise on Python values": """
def f(x):
    assert x.ndim == 1, "one axis"
    if x.shape[0] > 5:
        raise ValueError("too long")
    return x
""",
    "del": """
def f(x):
    y = x + 1
    del x
    return y
""",
    "print of tensors (after the call)": """
def f(x):
    print("x is", x, len(x))
    return x
""",
    "print decided by a tensor (a node of the graph)": """
def f(x):
    n = 0
    print("start")
    while x.sum() < 9:
        if x[0] > 1:
            print(n, x, sep=": ")
        x = x * 2 + 1
        n += 1
    return x
""",
    "attributes, closures and containers written under a branch": """
import types
KEPT = types.SimpleNamespace(n=0, last=None, log=[])
def f(x):
    k = [0]
    KEPT.n, KEPT.last = 0, x * 0
    def g(t):
        nonlocal y
        if t.sum() > 0:
            y = t
            KEPT.n += 1
            KEPT.last = t
            k.append(t)
        else:
            k.append(-t)
    y = x
    g(x)
    return y, KEPT.n, KEPT.last, k[1]
""",
    "an attribute counted in a loop": """
import types
KEPT = types.SimpleNamespace(n=0)
def f(x):
    KEPT.n = 0
    while x.sum() < 9:
        KEPT.n += 1
        x = x + 3
    return x * KEPT.n
""",
    "import inside a function": """
def f(x):
    import math
    return x * math.pi
""",
    "int counter carried by a loop comes back as int": """
def f(x):
    n = 0
    for i in range(100):
        if x.sum() + i > 5:
            break
        n += 2
    return n
""",
    "tuple carried by a loop": """
def f(x):
    pair = (x, x * 0)
    while pair[0].sum() < 9:
        pair = (pair[0] + 1, pair[1] + pair[0])
    return pair
""",
}

REFUSED: dict[str, str] = {
    "try": """
def f(x):
    try:
        return x + 1
    except ValueError:
        return x
""",
    "with": """
def f(x):
    with open("data.txt") as h:
        return x
""",
    "class": """
def f(x):
    class A:
        pass
    return x
""",
    "match": """
def f(x):
    match x.ndim:
        case 1:
            return x
    return -x
""",
    "effect before a raise under a tensor condition": """
def f(x):
    if x.sum() > 0:
        print("positive")
        raise ValueError("positive")
    return x
""",
    "raise of an own class under a tensor condition": """
class Positive(Exception):
    pass

def f(x):
    if x.sum() > 0:
        raise Positive("sum")
    return x
""",
    "bare raise": """
def f(x):
    raise
""",
    "other shape on one side": """
def f(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y
""",
    "other dtype on one side": """
def f(x):
    return x if x.sum() > 0 else x.astype("int32")
""",
    "variable set on one side": """
def f(x):
    if x.sum() > 0:
        y = x
    return y
""",
    "string chosen by a tensor": """
def f(x):
    mode = "a" if x.sum() > 0 else "b"
    return x
""",
    "return on some paths only": """
def f(x):
    if x.sum() > 0:
        return x
""",
    "result is a tensor or None": """
def f(x):
    if x.sum() > 0:
        return None
    return x
""",
    "results of other lengths": """
def f(x):
    if x.sum() > 0:
        return x, x
    return x, x, x
""",
    "dicts with other keys": """
def f(x):
    if x.sum() > 0:
        return {"a": x}
    return {"b": x}
""",
    "list grows on one side": """
def f(x):
    out = []
    if x.sum() > 0:
        out.append(x)
    return out
""",
    "list grows in a tensor loop": """
def f(x):
    out = []
    while x.sum() < 9:
        x = x + 1
        out.append(x)
    return out
""",
    "loop variable changes shape": """
def f(x):
    y = x
    while y.sum() < 9:
        y = y.reshape(1, -1) + 1
    return y
""",
    "loop variable changes dtype": """
def f(x):
    y = x.astype("int32")
    while y.sum() < 9:
        y = y + 1.5
    return y
""",
    "string changes in a loop": """
def f(x):
    mode = "a"
    while x.sum() < 9:
        x = x + 1
        mode = "b"
    return x
""",
    "variable first set in a loop": """
def f(x):
    while x.sum() < 9:
        x = x + 1
        last = x * 2
    return last
""",
    "assignment expression in the test of a loop": """
def f(x):
    s = x.sum()
    while (s := x.sum()) < 9:
        x = x + 1
    return s
""",
    "step of range is a tensor": """
def f(x):
    for i in range(0, 9, x.sum().astype("int32")):
        x = x + i
    return x
""",
    "unpacking in a counted tensor loop": """
def f(x):
    n = x.sum().astype("int32")
    for (a, b) in range(n):
        x = x + a
    return x
""",
    "comprehension filtered by a tensor": """
def f(x):
    return [t for t in (x, -x) if t.sum() > 0]
""",
    "text of a tensor": """
def f(x):
    return x, f"sum {x.sum()}"
""",
    "asnumpy()": """
def f(x):
    return x.asnumpy()
""",
    "tolist()": """
def f(x):
    return x.tolist()
""",
    "range over a tensor as a list": """
def f(x):
    return list(range(x.sum().astype("int32")))
""",
    "in": """
def f(x):
    return 1.0 in x
""",
    "eval": """
def f(x):
    return eval("x + 1")
""",
    "exec": """
def f(x):
    exec("y = 1")
    return x
""",
    "locals": """
def f(x):
    return locals()["x"]
""",
    "globals": """
def f(x):
    return globals()
""",
    "open": """
def f(x):
    h = open("data.txt")
    return x
""",
    "input": """
def f(x):
    return x * float(input())
""",
    "random numbers of Python or NumPy": """
import random
def f(x):
    return x * random.random()
""",
    "the time": """
import time
def f(x):
    return x, time.time()
""",
    "container changed on one side": """
KEPT = []
def f(x):
    if x.sum() > 0:
        KEPT.append(x)
    return x
""",
    "attribute that one side creates": """
import types
KEPT = types.SimpleNamespace()
def f(x):
    if x.sum() > 0:
        KEPT.last = x
    return x
""",
    "attribute that becomes a tensor on one side": """
import types
KEPT = types.SimpleNamespace(last=None)
def f(x):
    if x.sum() > 0:
        KEPT.last = x
    return x
""",
    "print to a file under a tensor condition": """
import sys
def f(x):
    if x.sum() > 0:
        print(x, file=sys.stderr)
    return x
""",
    "print of a list of tensors under a tensor condition": """
def f(x):
    if x.sum() > 0:
        print([x, x])
    return x
""",
    "integer that a loop multiplies": """
def f(x):
    n = 1
    while x.sum() < 9:
        n = n * 3
        x = x + 1
    return n, x
""",
    "endless Python loop": """
def f(x):
    n = 1
    while n:
        n = 1
    return x
""",
    "unbounded recursion": """
def f(x):
    def g(t):
        return t if t.sum() > 0 else g(t + 1)
    return g(x)
""",
    "operator on a set in place": """
def f(x):
    s = {1}
    s |= {2}
    return x
""",
    "asynchronous function": """
def f(x):
    async def g():
        return x
    return x
""",
}
