#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No type name has two definitions in one program: the linker silently keeps one destructor of two classes with one
name. Anonymous namespaces are a file's own. Each folder has an inline namespace (`kvs::inline io`): two functions of one
name in two folders are two symbols. A file opens the namespace of its folder, and its closing comments are right.

Usage: check_names.py ROOT, after a test of itself.
"""
import pathlib
import re
import sys

FOLDERS = ("src", "analyzers", "calibrate", "export", "tests")
ENDINGS = {".h", ".cpp", ".cu", ".cuh"}
# Comments, raw and plain literals, characters (not the ' of 1'000), preprocessor lines with their continuations.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*(?:\binline\s+\w+)?\s*$")
OPENED = re.compile(r"^namespace (kvs[\w:]*(?:inline \w+)?) \{$(.*?)^\}  // namespace \1$", re.DOTALL | re.MULTILINE)
TYPE = re.compile(
    r"(?:^|[;{}>\s])(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*"
    r"(\w+)\s*(?:final\s*)?(?::[^:].*)?$",
    re.DOTALL,
)
ALIAS = re.compile(r"\busing\s+(\w+)\s*=")


def definitions(text):
    """Returns the (namespace, name) of each type and alias that `text` defines outside functions and classes."""
    text = NOISE.sub(lambda match: "\n" * match.group().count("\n"), text)
    scopes = []  # the namespace of each open brace; None: a function, a class or an anonymous namespace
    start = 0
    for match in re.finditer(r"[{};]", text):
        head = text[start:match.start()].strip()
        start = match.end()
        if match.group() == "}":
            if scopes:
                scopes.pop()
            continue
        outside = None not in scopes
        space = "::".join(scope for scope in scopes if scope)
        if match.group() == ";":
            alias = ALIAS.match(head)
            if outside and alias:
                yield space, alias.group(1)
            continue
        namespace, kind = NAMESPACE.search(head), TYPE.search(head)
        if namespace:
            scopes.append(namespace.group(1).removesuffix("::") or None)
            continue
        if outside and kind and "(" not in head[kind.start():].split(":")[0] and not is_special(head):
            yield space, kind.group(1)
        scopes.append(None)


def is_special(head):
    """Returns whether `head` specialises a template, which has the name of its general template."""
    return re.match(r"template\s*<\s*>", head) is not None


def program_of(path):
    """Returns the program of a file. Tests of a folder are one program; a benchmark or a fuzz target is one file."""
    parts = path.parts
    if parts[0] != "tests":
        return "the programs"
    return str(path) if parts[1] in ("bench", "fuzz") else parts[1]


def is_stand_in(path, root):
    """Returns whether a file of the emulated device replaces one of src, which is not part of that program."""
    parts = path.parts
    return parts[:2] == ("tests", "emulation") and (root / "src").joinpath(*parts[2:]).exists()


def repeated(files):
    """Returns lines that name the types that several of `files`, (path, text), define in one program."""
    places = {}
    for path, text in files:
        for name in set(definitions(text)):
            places.setdefault(name, []).append(path)
    lines = []
    for (space, name), paths in sorted(places.items()):
        own = [path for path in paths if program_of(path) == "the programs"]
        for program in sorted({program_of(path) for path in paths}):
            meet = own if program == "the programs" else [p for p in paths if program_of(p) == program] + own
            if len(meet) > 1:
                lines.append(f"{space}::{name} is defined in " + " and ".join(sorted(map(str, meet))))
    return lines


def room_of(path):
    """Returns the inline namespace of a file's folder; none for tests and for the library of engines."""
    parts = path.parts
    if parts[0] in ("tests", "fuzz") or parts[:2] == ("export", "cpp"):
        return None
    if parts[0] == "src":
        return parts[1]
    if parts[0] == "export":
        return parts[1] if parts[1] in ("report", "engines") else "exporting"
    return "compare" if parts[:2] == ("calibrate", "compare") else parts[0]


def misplaced(files):
    """Returns lines that name files whose namespaces are not those of their folders, or whose comments are wrong."""
    lines = []
    for path, text in files:
        room = room_of(path)
        spaces = OPENED.findall(text) if room else []
        if room and len(spaces) != len(re.findall(r"^namespace kvs", text, re.MULTILINE)):
            lines.append(f"{path}: a namespace does not end with `}}  // namespace` and its name")
        for name, body in spaces:
            inner = name.removeprefix("kvs::inline ")
            is_declared = re.fullmatch(r"(?:\s*(?:class|struct) \w+;)+\s*", body)  # types of another folder
            if name == "kvs" or (inner != name and inner != room and not is_declared):
                lines.append(f"{path}: `namespace {name}` is not `namespace kvs::inline {room}`")
    return lines


def self_test():
    one = pathlib.Path("src/a/one.h")
    two = pathlib.Path("src/b/two.h")

    def found(first, second):
        return len(repeated([(one, first), (two, second)]))

    assert found("namespace kvs { class A final : public B { int b; }; }", "namespace kvs {\nstruct A {\n};\n}") == 1
    assert found("namespace kvs { enum class A : int { kX }; }", "namespace kvs { using A = int; }") == 1
    assert found("namespace kvs::io { class A {}; }", "namespace kvs { namespace io { class A {}; } }") == 1
    assert found("namespace kvs::inline io { class A {}; }", "namespace kvs::inline b { class A {}; }") == 1
    assert found("namespace kvs { class A {}; }", "namespace kvs { class A; }") == 0
    assert found("namespace kvs { class A {}; }", "namespace kvs { namespace { class A {}; } }") == 0
    assert found("namespace kvs { class A {}; }", "namespace kvs::cpu { class A {}; }") == 0
    assert found("namespace kvs { class A {}; }", "namespace kvs { struct B { struct A {}; }; }") == 0
    assert found("namespace kvs { class A {}; }", "namespace kvs { // class A {};\n const char* a = \"class A {\"; }") == 0
    assert found("template <> struct std::hash<A> {};", "template <> struct std::hash<B> {};") == 0

    def wrong(text):
        return len(misplaced([(one, text)]))

    assert wrong("namespace kvs::inline a {\nint x;\n}  // namespace kvs::inline a\n") == 0
    assert wrong("namespace kvs::inline b {\nclass X;\n}  // namespace kvs::inline b\n") == 0
    assert wrong("namespace kvs::inline b {\nint x;\n}  // namespace kvs::inline b\n") == 1
    assert wrong("namespace kvs {\nint x;\n}  // namespace kvs\n") == 1
    assert wrong("namespace kvs::inline a {\nint x;\n}  // namespace kvs\n") == 1


def main(arguments):
    self_test()
    root = pathlib.Path(arguments[0])
    files = [
        (path.relative_to(root), path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in ENDINGS and not is_stand_in(path.relative_to(root), root)
    ]
    lines = repeated(files) + misplaced(files)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
