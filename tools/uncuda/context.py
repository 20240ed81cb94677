"""Where a node stands: CUDA-only code, tests, code that knows PrivateUse1, and what a gate guards."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .guards import AVAILABLE, DEVICE, SPECIFIC_TOKENS, guards, leaves, speaks_of_cuda
from .names import VENDOR_TOKENS, cuda_member, is_generic, is_vendor, says_cuda_only, tokens
from .project import Project
from .source import FUNCTIONS, ScopeNode, Source

_CAPABILITY = {
    "get_device_capability", "gcnArchName", "get_arch_list", "is_bf16_supported", "_get_device_limits",
    "get_gencode_flags",     "_is_compiled", "jiterator", "CUDAGraph", "graph_pool_handle", "mem_pool", "MemPool",
    "use_mem_pool", "caching_allocator_alloc",     "get_sync_debug_mode", "set_sync_debug_mode",
}  # fmt: skip
# A function that weighs several collective backends speaks of NCCL as one among others.
_OTHER_COLLECTIVES = {"gloo", "xccl", "mpi", "ucc"}
_KNOWS_ACCELERATOR = ("torch.accelerator", "torch.get_device_module", "torch._C._get_accelerator")


@dataclass(frozen=True, slots=True)
class Uses:
    """What a region of code takes from CUDA."""

    generic: tuple[str, ...]
    specific: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CudaOnly:
    """Why code is about CUDA itself.

    Attributes:
        by_name: its module, class, function or registration says so; else its content does.
    """

    reason: str
    by_name: bool


class Context:
    """Answers about places in one file."""

    def __init__(self, source: Source, project: Project) -> None:
        self.source = source
        self.project = project
        self._uses: dict[ast.AST, Uses] = {}
        self._private: dict[ast.AST, list[ast.AST]] = {}
        parts = source.path.lower().split("/")
        self.module_is_cuda = says_cuda_only(source.path.removesuffix(".py")) or is_vendor(source.path)
        self.in_tests = any(p in ("test", "tests", "testing") for p in parts[:-1]) or parts[-1].startswith("test_")

    def cuda_only(self, node: ast.AST) -> CudaOnly | None:
        """Why the code around a node is about CUDA itself; None when it claims to be general."""
        if self.module_is_cuda:
            return CudaOnly("the module is about one vendor's device by its name", True)
        for scope in self.source.scopes(node):
            if isinstance(scope, ast.ClassDef):
                if says_cuda_only(scope.name) or tokens(scope.name) & VENDOR_TOKENS:
                    return CudaOnly(f"the class {scope.name} is about one device by its name", True)
                if not self.in_tests and self._class_is_specific(scope):
                    return CudaOnly(f"the class {scope.name} uses features that only CUDA has", False)
            elif self._registered_for_cuda(scope):
                return CudaOnly(f"the function {scope.name} is registered for CUDA", True)
            elif self._function_is_cuda_only(scope):
                return CudaOnly(f"the function {scope.name} is about CUDA by its name", True)
            elif specific := self._function_specific(scope):
                return CudaOnly(f"the function {scope.name} uses {specific}, which only CUDA has", False)
        return None

    def _function_specific(self, scope: ScopeNode) -> str | None:
        uses = self.uses([scope])
        if not uses.specific:
            return None
        # A long general function may have one corner for CUDA: what prevails decides.
        moves = sum(isinstance(node, ast.Attribute) and node.attr == "cuda" for node in ast.walk(scope))
        return uses.specific[0] if len(uses.specific) * 2 > len(uses.generic) + moves else None

    def _registered_for_cuda(self, scope: ScopeNode) -> bool:
        """Whether a decorator hands the function to a registry under CUDA's key."""
        for decorator in scope.decorator_list:
            for node in ast.walk(decorator):
                if isinstance(node, ast.Attribute) and node.attr in ("CUDA", "AutogradCUDA"):
                    return True
                if (
                    isinstance(node, ast.Constant)
                    and node.value in ("CUDA", "cuda")
                    and isinstance(decorator, ast.Call)
                ):
                    return True
        return False

    def _function_is_cuda_only(self, scope: ScopeNode) -> bool:
        if scope.name in ("cuda", "hip"):
            return True
        if self.in_tests and not scope.name.startswith("_"):
            # A test that carries the word is most often a general test written for the one device at hand.
            return bool(tokens(scope.name) & SPECIFIC_TOKENS)
        if tokens(scope.name) & VENDOR_TOKENS or tokens(scope.name) & SPECIFIC_TOKENS:
            return True
        return says_cuda_only(scope.name) and not self.project.reached_generically(scope.name)

    def _class_is_specific(self, scope: ast.ClassDef) -> bool:
        return bool(self.uses([scope]).specific) and sum(1 for _ in ast.walk(scope)) < 2500

    def uses(self, region: Iterable[ast.AST]) -> Uses:
        """The generic and the CUDA-only names that a region of code touches."""
        generic: list[str] = []
        specific: list[str] = []
        for node in region:
            found = self._uses.get(node)
            if found is None:
                found = self._uses[node] = self._read_uses(node)
            generic += found.generic
            specific += found.specific
        return Uses(tuple(generic), tuple(specific))

    def _read_uses(self, root: ast.AST) -> Uses:
        generic: list[str] = []
        specific: list[str] = []
        words: set[str] = set()
        for node in _outermost_names(root):
            dotted = self.source.dotted(node) or (node.attr if isinstance(node, ast.Attribute) else "")
            words |= tokens(dotted)
            last = dotted.rpartition(".")[2]
            if last in _CAPABILITY or any(part in _CAPABILITY for part in dotted.split(".")):
                specific.append(dotted)
            elif (member := cuda_member(dotted)) is not None:
                # Tensor classes and the old amp names have general counterparts under other names: neither.
                if not member.endswith("Tensor") and not member.startswith("amp."):
                    (generic if is_generic(dotted) else specific).append(dotted)
            elif (
                dotted.startswith(("torch.backends.cud", "torch.version.cuda", "torch.version.hip", "torch._C._cuda"))
                or tokens(dotted) & SPECIFIC_TOKENS
            ):
                specific.append(dotted)
        if words & _OTHER_COLLECTIVES:
            specific = [name for name in specific if tokens(name) & SPECIFIC_TOKENS != {"nccl"}]
        return Uses(tuple(generic), tuple(specific))

    def knows_private_use(self, node: ast.AST) -> str | None:
        """Why the function around a node already serves other accelerators; None when it does not."""
        scope = self.source.function(node)
        if scope is None:
            return None
        known = self._private.get(scope)
        if known is None:
            known = self._private[scope] = [inner for inner in ast.walk(scope) if _is_private_use(self.source, inner)]
        if not known:
            return None
        # General calls behind a gate do not open the gate: they show that it is too narrow.
        gate = next((up for up in self.source.ancestors(node) if isinstance(up, ast.stmt)), None)
        if isinstance(gate, ast.If) and node in ast.walk(gate.test):
            behind = {inner for statement in gate.body for inner in ast.walk(statement)}
            known = [inner for inner in known if inner not in behind]
        elsewhere = self._other_branches(node) if known else set()
        return "the function treats PrivateUse1 beside CUDA" if any(inner not in elsewhere for inner in known) else None

    def _other_branches(self, node: ast.AST) -> set[ast.AST]:
        """Nodes of branches that exclude the one around a node, where the choice is not one of devices."""
        found: set[ast.AST] = set()
        child = node
        for up in self.source.ancestors(node):
            if (
                isinstance(up, ast.If)
                and child is not up.test
                and "device" not in (text := ast.dump(up.test))
                and "cuda" not in text
            ):
                for statement in up.orelse if child in up.body else up.body:
                    found.update(ast.walk(statement))
            child = up
        return found

    def cuda_guards(self, node: ast.AST) -> list[tuple[str, ast.expr]]:
        """How the conditions known at a node speak of CUDA, innermost first."""
        found = []
        for guard in guards(self.source, node):
            kind = speaks_of_cuda(self.source, guard.test, guard.holds)
            if kind:
                found.append((kind, guard.test))
        return found

    def guarded_by_device(self, node: ast.AST) -> bool:
        """Whether a device that is at hand was found to be CUDA above this node."""
        return any(kind == DEVICE for kind, _ in self.cuda_guards(node))

    def region(self, test: ast.expr) -> list[ast.AST]:
        """What runs only when CUDA was found: the rest of the condition, and the guarded statements."""
        region: list[ast.AST] = []
        node: ast.AST = test
        for up in self.source.ancestors(test):
            if isinstance(up, ast.BoolOp):
                region += [value for value in up.values if value is not node]
            elif isinstance(up, ast.If) and node is up.test:
                positive = speaks_of_cuda(self.source, up.test, True)
                if positive or not leaves(up.body):
                    region += up.body if positive else up.orelse
                else:
                    region += self._after(up)
                break
            elif isinstance(up, ast.IfExp) and node is up.test:
                region.append(up.body if speaks_of_cuda(self.source, up.test, True) else up.orelse)
                break
            elif isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.comprehension)):
                scope = self.source.function(test)
                if scope is not None:
                    region += scope.body
                break
            elif isinstance(up, ast.stmt):
                break
            node = up
        return region

    def _after(self, statement: ast.stmt) -> list[ast.AST]:
        parent = self.source.parents.get(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return list(block[block.index(statement) + 1 :])
        return []

    def handled_beside(self, test: ast.expr) -> str | None:
        """Why other devices are served beside a CUDA branch: an else or elif that is general; None when not."""
        top = next((up for up in self.source.ancestors(test) if isinstance(up, ast.If)), None)
        if top is None:
            return None
        while isinstance(parent := self.source.parents.get(top), ast.If) and top in parent.orelse:
            top = parent
        for branch in chain(top):
            for statement in [branch.test, *branch.body, *_final_else(branch)]:
                for inner in ast.walk(statement):
                    if _is_private_use(self.source, inner):
                        return "another branch serves any accelerator"
        return None

    def gate_is_general(self, test: ast.expr) -> tuple[bool | None, str]:
        """Whether what a CUDA test guards would serve any accelerator: True, False, or None for no telling; and why."""
        uses = self.uses(self.region(test))
        if uses.specific:
            return False, f"the guarded code uses {uses.specific[0]}, which only CUDA has"
        if uses.generic:
            return True, f"the guarded code uses only calls that every accelerator has ({uses.generic[0]})"
        return None, "nothing in the guarded code says whether it is about CUDA"

    def availability_only(self, node: ast.AST) -> ast.expr | None:
        """The `torch.cuda.is_available()` test above a node, when no test of a device or flag stands above too."""
        found = self.cuda_guards(node)
        if found and all(kind == AVAILABLE for kind, _ in found):
            return found[0][1]
        return None


def chain(top: ast.If) -> Iterator[ast.If]:
    """The if and every elif of one statement."""
    yield top
    while len(top.orelse) == 1 and isinstance(top.orelse[0], ast.If):
        top = top.orelse[0]
        yield top


def _final_else(branch: ast.If) -> list[ast.stmt]:
    return [] if len(branch.orelse) == 1 and isinstance(branch.orelse[0], ast.If) else branch.orelse


def _outermost_names(root: ast.AST) -> Iterator[ast.expr]:
    stack: list[ast.AST] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield node
            while isinstance(node, ast.Attribute):
                node = node.value
            if not isinstance(node, ast.Name):
                stack.append(node)
        elif isinstance(node, (ast.AnnAssign, ast.arg)):
            # An annotation runs nothing.
            value = getattr(node, "value", None)
            if value is not None:
                stack.append(value)
        elif isinstance(node, FUNCTIONS):
            stack.extend([*node.body, *node.decorator_list, *node.args.defaults])
        else:
            stack.extend(ast.iter_child_nodes(node))


def _is_private_use(source: Source, node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        if "privateuse" in node.attr.lower() or node.attr == "custom_backend_name":
            return True
        dotted = source.dotted(node)
        return dotted is not None and dotted.startswith(_KNOWS_ACCELERATOR)
    if isinstance(node, ast.Name):
        return "privateuse" in node.id.lower()
    return False


def is_private_use(source: Source, node: ast.AST) -> bool:
    """Whether an expression names PrivateUse1 or the current accelerator, by name, call or imported constant."""
    return any(_is_private_use(source, inner) for inner in ast.walk(node))
