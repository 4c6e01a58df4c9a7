"""The shape of the package: data flows one way, importing is cheap, equal configurations compile once."""

import ast
import subprocess
import sys
from pathlib import Path

import mwjax

PACKAGE = Path(mwjax.__file__).parent

ORDER = (
    "types", "streams", "checks", "rules", "config", "lanes", "sumtree", "roster", "worlds", "retrieval",
    "estimators", "metrics", "governance", "episode", "registry", "engine", "theory", "reference", "testing",
    "store", "texts", "fields", "settings", "experiment", "analysis", "contour", "priors", "results", "sweep",
    "compare", "separation", "paper", "sensitivity", "formats", "logs", "replay", "plots", "report", "peers",
    "bench", "cli", "__main__",
)  # fmt: skip
NO_JAX = {"rules", "reference", "store", "analysis", "theory", "paper", "plots", "logs", "report", "cli"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path, *, top_level: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py" or path.parent != PACKAGE]


def test_every_module_has_its_place():
    assert {room(path) for path in modules()} <= set(ORDER)


def test_a_module_imports_only_modules_above_it():
    wrong = []
    for path in modules():
        mine = ORDER.index(room(path))
        for name in imports(path, top_level=False):
            parts = name.split(".")
            if parts[0] == "mwjax" and len(parts) > 1 and parts[1] in ORDER and ORDER.index(parts[1]) > mine:
                wrong.append(f"{room(path)} imports {name}")
    assert not wrong, wrong


def test_host_modules_do_not_load_jax_themselves():
    wrong = [room(path) for path in modules() if room(path) in NO_JAX and "jax" in imports(path, top_level=True)]
    assert not wrong, wrong


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split())


def test_the_library_loads_jax_and_numpy_only():
    found = loaded_after("import mwjax; mwjax.simulate, mwjax.make_params")
    assert "jax" in found
    assert not {"matplotlib", "xarray", "zarr", "rich", "pydantic", "pandas", "optax"} & found


def test_importing_mwjax_starts_no_backend():
    code = "import mwjax, jax; mwjax.simulate; from jax._src import xla_bridge; assert not xla_bridge._backends"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_loads_neither_jax_nor_numpy():
    found = loaded_after("from mwjax.__main__ import main; main(['--help'])")
    assert "mwjax" in found
    assert not {"jax", "numpy", "xarray"} & found


def test_the_simulation_stays_small():
    core = ORDER[: ORDER.index("engine") + 1]
    lines = {str(path): len(path.read_text().splitlines()) for path in modules() if room(path) in core}
    assert sum(lines.values()) < 4_450, lines


def test_modules_fit_a_sitting():
    long = {str(path): n for path in modules() if (n := len(path.read_text().splitlines())) > 300}
    assert not long, long
