"""Find which names a block reads, binds and changes, and its other effects, by reading its code without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Called by their bare names, they don't change their arguments.
PURE_FUNCTIONS = frozenset(
    """
    abs all any ascii bin bool bytes callable chr complex dict dir divmod enumerate filter float format frozenset
    getattr hasattr hash help hex id int isinstance issubclass len list map max min oct ord pow range repr reversed
    round set slice sorted str sum tuple type zip Counter Path
    """.split()
)
# They show their arguments and do nothing else.
DISPLAY_FUNCTIONS = frozenset({"print", "display", "pprint"})
# Called as methods or as functions of a module, they don't change their object, except with `inplace=True`.
PURE_METHODS = frozenset(
    """
    abs agg aggregate all any apply applymap arange argmax argmin argsort array asarray assign astype average
    bfill capitalize ceil clip columns concat concatenate copy corr count cov cummax cummin cumprod cumsum cut
    date date_range day_name decode describe diff dot drop_duplicates dropna dt dtypes duplicated encode endswith
    eq exists exp explode factorize ffill fillna filter find findall first fit_predict floor format from_dict
    from_records fullmatch ge get get_dummies getcwd getenv getsize group groupby groups gt head histogram
    hour idxmax idxmin iglob index info interp is_dir is_file isalpha isdigit isfile isdir isin isinf isna isnan
    isnull isoformat items iterdir iterrows itertuples join joinpath keys last le len linspace listdir loads log
    log10 log1p lower lstrip lt map match max mean median melt memory_usage merge merge_asof min mode
    month_name ne nlargest notna notnull now nsmallest nth nunique ones ones_like partition pct_change percentile
    pivot pivot_table power qcut quantile query rank ravel read read_bytes read_csv read_excel read_feather
    read_html read_json read_parquet read_pickle read_sql read_sql_query read_table read_text readline readlines
    rename reset_index reshape resample resolve rfind rglob rolling round rpartition rsplit rstrip scandir search
    select_dtypes set_index shift size sort_index sort_values split splitlines sqrt squeeze stack startswith stat
    std strftime strip strptime sum swapcase swaplevel tail take timestamp to_datetime to_dict to_frame
    to_list to_markdown to_numeric to_numpy to_period to_records to_string to_timedelta today tolist total_seconds
    transform translate transpose unique unstack upper value_counts values var walk where which xs zeros zeros_like
    zfill DataFrame Series Timestamp Timedelta train_test_split
    predict predict_proba score accuracy_score r2_score mean_squared_error mean_absolute_error dumps
    """.split()
)
# They may change the object whose methods they are, but not their arguments.
KEEPS_ARGUMENTS = frozenset(
    """
    annotate axhline axvline bar barh barplot boxplot countplot errorbar fill_between fit fit_transform heatmap hist
    histplot imshow jointplot kdeplot legend lineplot loglog pairplot pcolormesh pie plot regplot savefig scatter
    scatterplot semilogx semilogy set set_title set_xlabel set_xlim set_xticks set_ylabel set_ylim set_yticks subplots
    suptitle text title violinplot xlabel xlim xticks ylabel ylim yticks to_csv to_excel to_json to_parquet to_pickle
    dump dumps write writerow writerows run
    """.split()
)
# However they are called, they change files, databases or something outside the program.
SIDE_EFFECT_FUNCTIONS = frozenset(
    """
    chmod commit copyfile copytree dump execute executemany executescript extractall imsave imwrite makedirs mkdir
    move post put rename rmdir rmtree run save savefig savemat savetxt savez savez_compressed send sendmail symlink
    symlink_to system to_clipboard to_csv to_excel to_feather to_file to_gbq to_hdf to_html to_json to_latex
    to_parquet to_pickle to_sql to_stata to_xml touch unlink upload urlretrieve write write_bytes write_html
    write_image write_json write_text writelines writerow writerows writestr check_call check_output Popen
    """.split()
)
# Any function of these modules has side effects, unless it is known to be pure.
SIDE_EFFECT_MODULES = frozenset({"os", "shutil", "subprocess", "webbrowser", "smtplib", "ftplib"})
# With these, code can read and change names that don't appear in it.
OPAQUE = frozenset({"exec", "eval", "globals", "locals", "vars", "compile", "__import__", "get_ipython"})


@dataclass
class Names:
    """The effects of a piece of code on the names around it."""

    reads: set[str] = field(default_factory=set)  # read before the code itself has bound them
    late: set[str] = field(default_factory=set)  # read by functions that it defines, when those are called
    binds: set[str] = field(default_factory=set)  # bound for certain, so that their earlier values do not matter
    may_bind: set[str] = field(default_factory=set)  # bound in a branch or a loop
    # Changed in place: assigned into, or handed to something that may change them.
    changes: set[str] = field(default_factory=set)
    modules: dict[str, str] = field(default_factory=dict)  # names bound by imports, with the module of each
    # Groups of names that may stand for parts of one object.
    alike: set[frozenset[str]] = field(default_factory=set)
    functions: dict[str, Names] = field(default_factory=dict)  # the effects of calling each function that it defines
    changes_arguments: bool = False  # of a function: it may change its arguments
    effects: bool = False  # it changes files or something outside the program
    opaque: bool = False  # it may read and change any name
    star: bool = False
    awaits: bool = False

    @property
    def only_looks(self) -> bool:
        """Check that calling a function changes nothing."""
        return not (self.effects or self.changes or self.changes_arguments or self.opaque)

    @property
    def writes(self) -> set[str]:
        return self.binds | self.may_bind | self.changes


class KnownNames(dict[str, Names]):
    """The functions that earlier blocks defined, and the modules that they imported."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: dict[str, str] = {}


def names_of(nodes: Iterable[ast.stmt], known: KnownNames | None = None) -> Names:
    """Collect the effects of statements on names; `known` has the functions of earlier blocks."""
    reading = _NamesReader(known or KnownNames())
    for node in nodes:
        reading.visit(node)
    return reading.names


class _NamesReader(ast.NodeVisitor):
    """Walks statements in the order in which they run."""

    def __init__(self, known: KnownNames, parameters: Iterable[str] = ()) -> None:
        self.names = Names()
        self._known = known
        self._bound = set(parameters)
        self._certain = True

    # -- binding and reading -------------------------------------------------------------------------------------

    def _bind(self, name: str) -> None:
        (self.names.binds if self._certain else self.names.may_bind).add(name)
        self._bound.add(name)

    def _change(self, node: ast.expr) -> None:
        """Note that the object behind an expression changes."""
        root = root_name(node)
        if root is not None:
            self.names.changes.add(root)
            # os.environ and the like are read by code that runs later, without naming them.
            is_target = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
            self.names.effects |= is_target and self._package(root) in SIDE_EFFECT_MODULES

    def visit_Name(self, node: ast.Name) -> None:
        match node.ctx:
            case ast.Load():
                self.names.opaque |= node.id in OPAQUE
                if node.id not in self._bound:
                    self.names.reads.add(node.id)
            case ast.Del():
                self.names.reads.add(node.id)
                self._bind(node.id)
            case ast.Store():
                self._bind(node.id)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._change(node)
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    # -- statements ----------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
        # The name and what it is taken from may share one object, so changing one may change the other.
        bound = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        sources = {root for part in sources_of(node.value) if (root := root_name(part)) and not self._package(root)}
        if len(bound | sources) > 1:
            self.names.alike.add(frozenset(bound | sources))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            if node.target.id not in self._bound:
                self.names.reads.add(node.target.id)
            self.names.changes.add(node.target.id)  # a list grows in place, and its other names see it
        self.visit(node.target)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._bind(name)
            self.names.modules[name] = alias.name if alias.asname else name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.names.star = True
            else:
                self._bind(alias.asname or alias.name)
                self.names.modules[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"

    def visit_Global(self, node: ast.Global) -> None:
        self.names.changes.update(node.names)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (*node.decorator_list, node.args, *filter(None, [node.returns])):
            self.visit(outside)
        inside = self._inside(node.body, node.args)
        self._bind(node.name)
        self.names.functions[node.name] = inside

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._inside([ast.Expr(node.body)], node.args)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self._inside(node.body)
        self._bind(node.name)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def _inside(self, body: list[ast.stmt], given: ast.arguments | None = None) -> Names:
        """Return the effects of calling a body. What it reads counts as read later, by calls."""
        parameters = []
        if given is not None:
            starred = filter(None, (given.vararg, given.kwarg))
            parameters = [part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs, *starred)]
        reading = _NamesReader(self._known, parameters)
        for statement in body:
            reading.visit(statement)
        inside, local = reading.names, reading.names.binds | reading.names.may_bind | set(parameters)
        outside = {name for part in body for one in ast.walk(part) if isinstance(one, ast.Global) for name in one.names}
        self.names.late |= (inside.reads | inside.late) - (local - outside)
        self.names.opaque |= inside.opaque
        inside.changes_arguments = bool(inside.changes & set(parameters))
        inside.changes = (inside.changes - (local - outside)) | outside
        return inside

    def generic_visit(self, node: ast.AST) -> None:
        self.names.awaits |= isinstance(node, ast.AsyncWith | ast.AsyncFor | ast.Await)
        if not isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)):
            super().generic_visit(node)
            return
        certain, bound = self._certain, set(self._bound)
        if isinstance(node, ast.For | ast.AsyncFor):
            self.visit(node.iter)
        self._certain = False
        super().generic_visit(node)
        self._certain, self._bound = certain, bound

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    # -- expressions ---------------------------------------------------------------------------------------------

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = set(self._bound)
        certain, self._certain = self._certain, False
        bound = {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
        for part in node.generators:
            self.names.awaits |= bool(part.is_async)
            self.visit(part.iter)
            self._bound |= bound
            for condition in part.ifs:
                self.visit(condition)
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(element)
        self._bound, self._certain = before, certain

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if is_open_for_writing(node):
            self.names.effects = True
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        called = self.names.functions.get(name) or self._known.get(name)
        if called is not None:
            self.names.changes |= called.changes
            self.names.effects |= called.effects
        if only_looks(node) or (called is not None and not called.changes_arguments):
            return
        self.names.effects |= (
            called_name(node) in SIDE_EFFECT_FUNCTIONS
            or self._package(root_name(node.func) or "") in SIDE_EFFECT_MODULES
        )
        if isinstance(node.func, ast.Attribute):
            self._change(node.func)
        if called_name(node) in KEEPS_ARGUMENTS:
            return
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._change(argument)

    def _package(self, name: str) -> str:
        """Return the top-level package that a name was imported from, or an empty string."""
        module = self.names.modules.get(name) or self._known.modules.get(name, "")
        return module.partition(".")[0]


# -- single calls, expressions and statements --------------------------------------------------------------------------


def root_name(node: ast.expr) -> str | None:
    """Return the name that an expression like `name.attribute[index].method()` begins with."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=part) | ast.Subscript(value=part) | ast.Starred(value=part) | ast.Await(value=part):
            return root_name(part)
        case ast.Call(func=part):
            return root_name(part)
    return None


def sources_of(value: ast.expr) -> list[ast.expr]:
    """List the expressions that a value may share an object with; those that make a new object don't count."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [source for part in parts for source in sources_of(part)]
        case ast.Call() if only_looks(value):
            return []
        case ast.Call(func=ast.Attribute()) | ast.Name() | ast.Attribute() | ast.Subscript() | ast.Starred():
            return [value]
        case ast.IfExp(body=body, orelse=orelse):
            return [*sources_of(body), *sources_of(orelse)]
    return []


def called_name(call: ast.Call) -> str:
    return str(getattr(call.func, "id", "") or getattr(call.func, "attr", ""))


def only_looks(call: ast.Call, functions: Mapping[str, Names] | None = None) -> bool:
    """Check that a call is known to change nothing; `functions` are those that the conversation defined."""
    if any(keyword.arg == "inplace" for keyword in call.keywords):
        return False
    match call.func:
        case ast.Name(id=name) if functions and name in functions:
            return functions[name].only_looks
        case ast.Name(id=name):
            return name in PURE_FUNCTIONS | DISPLAY_FUNCTIONS or (name == "open" and not is_open_for_writing(call))
        case ast.Attribute(attr="sample"):
            return any(keyword.arg == "random_state" for keyword in call.keywords)
        case ast.Attribute(attr=name):
            return name in PURE_METHODS
    return False


def is_open_for_writing(call: ast.Call) -> bool:
    if called_name(call) != "open":
        return False
    position = 1 if isinstance(call.func, ast.Name) else 0
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[position : position + 1]
    if not given:
        return False
    mode = given[0]
    return not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+"))


def is_inspection(node: ast.stmt, functions: Mapping[str, Names]) -> bool:
    """Check that a statement only shows something, so that nothing later can depend on it."""

    def acts(part: ast.AST) -> bool:
        if isinstance(part, ast.Call):
            return not only_looks(part, functions)
        return isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)

    match node:
        case ast.Pass():
            return True
        case ast.Expr(value=value):
            return not any(map(acts, ast.walk(value)))
        case ast.For(iter=value, body=body, orelse=orelse) | ast.If(test=value, body=body, orelse=orelse):
            return not any(map(acts, ast.walk(value))) and all(
                is_inspection(part, functions) for part in [*body, *orelse]
            )
    return False
