#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison finds differences, and the compared runs include every command, method, type, task and format.

Usage: outputs_test.py BIN
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import commands
import renames
from comparison import Rules, differences, file_differences

BIN = pathlib.Path(sys.argv.pop(1))


def found(old, new, step="step", command="eval"):
    return sorted(differences(old, new, Rules(step, command)))


def words_of_all():
    return [(step.program, step.words) for step in commands.steps("model.gguf")]


def help_of(program, *command):
    return subprocess.run([BIN / program, *command, "--help", "all"], capture_output=True, text=True, check=True).stdout


def listed(text, head):
    """Returns the first words of the indented lines below the line that begins with `head`."""
    lines = text[text.index(head):].splitlines()[1:]
    end = next((n for n, line in enumerate(lines) if not line.startswith("  ")), len(lines))
    return [line.split()[0].rstrip(":") for line in lines[:end] if not line.startswith("   ")]


class Comparison(unittest.TestCase):
    def test_sees_a_changed_number(self):
        self.assertEqual(found({"a": [1, {"b": 0.1}]}, {"a": [1, {"b": 0.10000000000000002}]}),
                         ["/a/1/b: found 0.10000000000000002, expected 0.1"])

    def test_sees_strings_kinds_lengths_and_members(self):
        self.assertEqual(found({"a": "x"}, {"a": "y"}), ['/a: found "y", expected "x"'])
        self.assertEqual(found({"a": True}, {"a": 1}), ["/a: found 1, expected true"])
        self.assertEqual(found({"a": None}, {"a": 0}), ["/a: found 0, expected null"])
        self.assertEqual(found([1, 2], [1]), [": found 1 elements, expected 2"])
        self.assertEqual(found({"a": 1}, {"b": 1}), ["/a: found nothing, expected it", "/b: expected nothing, found it"])

    def test_numbers_are_equal_however_they_are_written(self):
        self.assertEqual(found({"a": 1}, {"a": 1.0}), [])

    def test_leaves_out_times_origins_and_words(self):
        self.assertEqual(found({"seconds": 1, "tool_version": "1", "verdict": "a"},
                               {"seconds": 2, "tool_version": "2", "verdict": "b"}), [])
        self.assertEqual(found({"verdict": "a"}, {}), ["/verdict: found nothing, expected it"])

    def test_renamed_keys_are_compared_under_their_new_names(self):
        with mock.patch.object(renames, "KEYS", [("compare", "cells", "configurations")]):
            old, new = {"cells": [1]}, {"configurations": [2]}
            self.assertEqual(found(old, new, command="compare"), ["/configurations/0: found 2, expected 1"])
            self.assertEqual(len(found(old, new, command="eval")), 2)
            with self.assertRaises(ValueError):
                found(old, {"cells": [1], "configurations": [1]}, command="compare")

    def test_changes_on_purpose_pass_where_they_are_listed(self):
        with mock.patch.object(renames, "CHANGES", [("info", "/methods", "more of them")]):
            self.assertEqual(found({"methods": [1]}, {"methods": [1, 2]}, step="info"), [])
            self.assertEqual(len(found({"methods": [1]}, {"methods": [1, 2]}, step="eval")), 1)
            self.assertEqual(len(found({"methods_left": 1}, {"methods_left": 2}, step="info")), 1)

    def test_bytes_of_other_files_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            old, new = pathlib.Path(folder, "old.gguf"), pathlib.Path(folder, "new.gguf")
            old.write_bytes(b"abc")
            new.write_bytes(b"abd")
            self.assertEqual(list(file_differences(old, new, Rules("", ""))),
                             [": found other bytes from 2 on (3 of them, expected 3)"])


class Runs(unittest.TestCase):
    def test_have_names_of_their_own_and_read_what_is_there(self):
        there = set()
        for step in commands.steps("/model.gguf"):
            self.assertNotIn(step.name, there)
            self.assertLessEqual(step.needs(), there, step.name)
            there.add(step.name)

    def test_are_of_every_command(self):
        for program in ("kvspectrum", "kvcalibrate"):
            run = {words[0] for one, words in words_of_all() if one == program}
            self.assertEqual(run, set(listed(help_of(program), "Commands:")))

    def test_are_of_every_method_task_and_format(self):
        words = {word for _, words in words_of_all() for word in words}
        schema = json.loads(subprocess.run([BIN / "kvcalibrate", "validate", "--schema"], capture_output=True, check=True).stdout)
        tasks = listed(help_of("kvcalibrate", "eval"), "Tasks:")
        for name in schema["properties"]["method"]["enum"] + tasks:
            self.assertTrue(name in words, f"found no run of {name}, expected one in commands.py (methods: METHODS)")
        for name in listed(help_of("kvcalibrate", "export"), "Formats of"):
            self.assertIn(name, words)

    def test_are_of_every_storage_type(self):
        types = re.search(r"^ *TYPE: ([^;]+);", help_of("kvcalibrate", "eval"), re.MULTILINE).group(1)
        self.assertEqual(commands.STORES, types.split(", "))


if __name__ == "__main__":
    unittest.main()
