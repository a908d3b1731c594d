"""What gdb knows of Lockstep: nodes, members, tasks and contexts printed by what
they are, the step of a frame in a backtrace, $this_step(), and `lockstep break`.

    gdb -x framework/lockstep-gdb.py --args lockstep run CONFIG --as sim

docs/debugging.md shows each. Installed beside liblockstep.so, gdb loads it with
the library."""

import gdb
import gdb.printing
from gdb.FrameDecorator import FrameDecorator

STEP_MAIN = "step_main"  # framework/task/step.c: where the stack of a step ends


def text(value):
    """A C string, or "" for NULL."""
    return value.string(errors="replace") if int(value) else ""


def number(value):
    """Of an integer, also an _Atomic one."""
    return int(value.cast(gdb.lookup_type("long")))


def word(value, prefix):
    """An enumerator in a word: NODE_JOINED is "joined"."""
    return str(value).rpartition(prefix)[2].lower()


def pointer_to(name):
    return gdb.lookup_type(name).pointer()


# ---- printers -------------------------------------------------------------


class Printer:
    def __init__(self, value):
        self.value = value

    def children(self):
        return iter(())


class Node(Printer):
    """struct ls_node: who it is; its members."""

    def to_string(self):
        me, options = self.value["me"], self.value["options"]
        return 'node %d (%s) of job "%s", %s, at %s' % (
            int(options["id"]),
            me["role"].string() or "no role",
            me["job"].string(),
            word(self.value["phase"], "NODE_"),
            me["endpoint"].string() or "no endpoint yet",
        )

    def children(self):
        return Members(self.value["world"]).children()


class Members(Printer):
    """struct membership: everybody known, by id."""

    def to_string(self):
        return "%d known, %s" % (
            int(self.value["n"]),
            "formed" if self.value["formed"] else "not formed yet",
        )

    def children(self):
        for i in range(int(self.value["n"])):
            member = self.value["at"][i].dereference()
            yield "node %d" % int(member["id"]), member


class Member(Printer):
    """struct member: one of them."""

    def to_string(self):
        return "%s%s at %s, incarnation %x" % (
            (text(self.value["role"]) + " ").lstrip(),
            word(self.value["state"], "LS_MEMBER_"),
            text(self.value["endpoint"]) or "no endpoint yet",
            int(self.value["incarnation"]),
        )


class Task(Printer):
    """struct ls_task: its node, how far it is, its steps."""

    def to_string(self):
        return "task of %s, %s, iteration %d" % (
            "node %d" % int(self.value["node"]["options"]["id"])
            if int(self.value["node"])
            else "no node",
            "running" if number(self.value["running"]) else "not running",
            number(self.value["iterations"]),
        )

    def children(self):
        yield "context", self.value["context"].dereference()
        yield "pipeline", self.value["pipeline"]


class Pipeline(Printer):
    """struct pipeline: the parts in order, and how far each is."""

    def to_string(self):
        return "%d of %d begun" % (int(self.value["begun"]), int(self.value["n"]))

    def children(self):
        for i in range(int(self.value["n"])):
            yield "[%d]" % i, self.value["parts"][i].dereference()


class Part(Printer):
    """struct part: one middleware, and where its turn stands."""

    def to_string(self):
        if not self.value["active"]:
            state = "for another role"
        elif int(self.value["suspended"]):
            state = "yielded"
        elif int(self.value["step"]["fiber"]):
            state = "runs"
        else:
            state = "waits, or is done"
        return "%s: %s" % (text(self.value["what"]["name"]), state)


class Step(Printer):
    """struct ls_step."""

    def to_string(self):
        return step_text(self.value)


class Context(Printer):
    """struct ls_context: its fields, as its type has them."""

    SHOWN = {
        "LS_FIELD_BOOL": "_Bool",
        "LS_FIELD_INT": "long",
        "LS_FIELD_DOUBLE": "double",
        "LS_FIELD_UINT": "unsigned long",
        "LS_FIELD_UINT32": "unsigned int",
    }
    COUNTED = {
        "LS_FIELD_BYTES": ("struct ls_bytes", "size", "bytes"),
        "LS_FIELD_NUMBERS": ("struct ls_numbers", "n", "numbers"),
        "LS_FIELD_ITEMS": ("struct ls_items", "n", "items"),
    }

    def to_string(self):
        return 'context of type "%s"' % text(self.value["type"]["name"])

    def children(self):
        kind = self.value["type"]
        data = self.value["data"].cast(pointer_to("char"))
        for i in range(int(kind["n_fields"])):
            field = kind["fields"][i]
            at = data + int(field["offset"])
            yield text(field["name"]), self.field(str(field["type"]), at)

    def field(self, kind, at):
        if kind in self.SHOWN:
            return at.cast(pointer_to(self.SHOWN[kind])).dereference()
        if kind in self.COUNTED:
            name, count, what = self.COUNTED[kind]
            held = at.cast(pointer_to(name)).dereference()
            return "%d %s" % (int(held[count]), what)
        if kind == "LS_FIELD_TEXT":
            return text(at.cast(pointer_to("char").pointer()).dereference())
        return "at %s" % at.cast(pointer_to("void"))


def printers():
    every = gdb.printing.RegexpCollectionPrettyPrinter("lockstep")
    for tag, printer in (
        ("ls_node", Node),
        ("membership", Members),
        ("member", Member),
        ("ls_task", Task),
        ("pipeline", Pipeline),
        ("part", Part),
        ("ls_step", Step),
        ("ls_context", Context),
    ):
        every.add_printer(tag, "^%s$" % tag, printer)
    return every


# `member` is also the name of a struct of the program's role member.
def lookup(value, all_printers=printers()):
    if str(value.type.strip_typedefs().unqualified()) == "struct member":
        if not any(f.name == "showings" for f in value.type.fields()):
            return None
    return all_printers(value)


# ---- steps in backtraces ---------------------------------------------------


def step_text(step):
    task = step["task"]
    of = " of node %d" % int(task["node"]["options"]["id"]) if int(task["node"]) else ""
    return "step %s%s, iteration %d" % (
        text(step["name"]),
        of,
        number(task["iterations"]),
    )


def step_of(frame):
    """The step of a frame of step_main(); None: it is none, or cannot be known."""
    if frame.name() != STEP_MAIN:
        return None
    for variable in ("step", "fiber", "point"):
        try:
            value = frame.read_var(variable)
            if value.is_optimized_out or not int(value):
                continue
            if variable != "step":
                value = value.cast(pointer_to("struct ls_fiber"))["arg"]
            step = value.cast(pointer_to("struct ls_step")).dereference()
            step["task"]["iterations"].fetch_lazy()
            return step
        except (gdb.error, ValueError):
            continue
    return None


class StepFrame(FrameDecorator):
    def function(self):
        frame = self.inferior_frame()
        step = step_of(frame)
        return step_text(step) if step is not None else super().function()


class StepFrames:
    def __init__(self):
        self.name = "lockstep"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):  # below it is nothing: pc 0
        return (StepFrame(f) for f in frames if f.inferior_frame().pc() != 0)


class ThisStep(gdb.Function):
    """$this_step(): the step whose code the selected frame is in, as ls_step *."""

    def __init__(self):
        super().__init__("this_step")

    def invoke(self):
        frame = gdb.selected_frame()
        while frame is not None:
            step = step_of(frame)
            if step is not None:
                return step.address
            frame = frame.older()
        raise gdb.GdbError("this is not inside a step")


# ---- lockstep break --------------------------------------------------------


class StepBreakpoint(gdb.Breakpoint):
    def __init__(self, node, step, iteration):
        super().__init__(STEP_MAIN)
        self.node, self.step, self.iteration = node, step, iteration

    def stop(self):
        step = step_of(gdb.newest_frame())
        if step is None or text(step["name"]) != self.step:
            return False
        task = step["task"]
        if not int(task["node"]) or int(task["node"]["options"]["id"]) != self.node:
            return False
        if self.iteration is not None and number(task["iterations"]) != self.iteration:
            return False
        print(step_text(step))
        return True


class Lockstep(gdb.Command):
    """Commands for programs that stand on Lockstep: lockstep break."""

    def __init__(self):
        super().__init__("lockstep", gdb.COMMAND_USER, prefix=True)


class Break(gdb.Command):
    """lockstep break NODE STEP [ITERATION]
Stop where a step of a node begins: in every iteration, or in the one before
which so many were done. `step 2` then goes into its function. In a simulation
`run` comes to the same place again."""

    def __init__(self):
        super().__init__("lockstep break", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        try:
            node, step = int(words[0]), words[1]
            iteration = int(words[2]) if len(words) == 3 else None
            if len(words) > 3:
                raise ValueError
        except (IndexError, ValueError):
            raise gdb.GdbError(
                "as in: lockstep break 2 collect 7; a name of several words in quotes"
            ) from None
        gdb.execute("set breakpoint pending on")  # the library is loaded later
        StepBreakpoint(node, step, iteration)


gdb.pretty_printers.append(lookup)
StepFrames()
ThisStep()
Lockstep()
Break()
