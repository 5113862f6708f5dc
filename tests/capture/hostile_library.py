"""Small hostile programs: objects and settings of libraries say something else at a later call."""
# fmt: off
# ruff: noqa: E501

from __future__ import annotations

LIBRARY = '''import configparser, decimal, email.message, functools, logging, sched, textwrap, threading
import numpy as np
from unittest import mock
from xml.etree import ElementTree
config = configparser.ConfigParser()
log = logging.Logger("hostile", "INFO")
message = email.message.Message()
element = ElementTree.Element("a")
wrapper = textwrap.TextWrapper(width=3)
plan = sched.scheduler()
asked = mock.Mock(return_value=0)
'''
MADE = LIBRARY + '''
class Model:
    area = functools.partialmethod(lambda self, t, k, j=1: t * k * j, k=4)
    @functools.cached_property
    def width(self): SEEN.append("width"); return 5
    @functools.lru_cache
    def at(self, n): SEEN.append(("at", n)); self.last = n; return n + 1
m = Model()
'''
LOGGED = LIBRARY + '''
class Kept(logging.Handler):
    def emit(self, r): SEEN.append((r.levelname, r.getMessage(), r.funcName, r.lineno, getattr(r, "k", 0)))
log.addHandler(Kept())
adapter = logging.LoggerAdapter(log, {"k": 2})
def inner(t):
    log.log(logging.WARNING, "inner %d", 3)
    return t * 2
'''
PROGRAMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    'sections of a configuration': (LIBRARY, 'return x * 2 if config.has_section("a") else x + len(config.sections())', ('config.add_section("a")', 'config.remove_section("a")')),
    'a header of a message': (LIBRARY, 'return x * 2 if message["a"] == "1" else x', ('message["a"] = "1"', 'del message["a"]')),
    'an attribute of an element': (LIBRARY, 'return x * 2 if element.get("k") == "1" else x', ('element.set("k", "1")', 'element.set("k", "2")')),
    'lines of a wrapper': (LIBRARY, 'return x * len(wrapper.wrap("aa bb cc"))', ('wrapper.width = 50',)),
    'events of a scheduler': (LIBRARY, 'return x * 2 if plan.empty() else x', ('plan.enter(9, 1, print)', 'plan.cancel(plan.queue[0])')),
    'a mock': (LIBRARY, 'return x * asked() + asked.call_count', ('asked.return_value = 2', 'asked.reset_mock()')),
    'the level of a logger': (LIBRARY, '''
if log.isEnabledFor(logging.DEBUG): x = x * 2
return x + log.getEffectiveLevel(), log.hasHandlers()
''', ('log.setLevel("DEBUG")', 'log.addHandler(logging.NullHandler())', 'log.setLevel("INFO")')),
    'who calls a logger': (LOGGED, '''
log.info("n %d", n)
log.log(logging.ERROR, "log")
log.warning("extra", extra={"k": n})
adapter.info("adapted")
return inner(x) + 1
''', ('log.setLevel("ERROR")',)),
    'settings': (LIBRARY, '''
if np.geterr()["divide"] == "ignore": x = x * 2
if ms.get_context("max_call_depth") == 999: x = x + 1
return x * np.get_printoptions()["precision"], threading.active_count()
''', ('np.seterr(divide="ignore")', 'np.seterr(divide="warn"); ms.set_context(max_call_depth=999)', 'ms.set_context(max_call_depth=1000)', 'np.set_printoptions(precision=5)', 'np.set_printoptions(precision=8)')),
    'the context of decimals': (LIBRARY, 'return x * 2 if decimal.getcontext().prec > 9 else x', ('decimal.getcontext().prec = 5', 'decimal.getcontext().prec = 28')),
    'a cached property of an object that other code gets': (MADE, 'z = (m.area(x, k=2), m.width)\nreturn z, float(x.sum())', ('del m.width',)),
    'a memoized method of an object that other code gets': (MADE, 'z = (m.area(x, k=2), m.at(n))\nreturn z, float(x.sum()), m.last', ('',)),
}
