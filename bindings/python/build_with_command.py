"""The build backend: maturin's, after the command `rackmem` has been built to come with the wheel.

A user of Python then needs no cargo to start a rack (`python -m rackmem up`, `rackmem.up`)."""

import os
import pathlib
import shutil
import subprocess

import maturin
from maturin import *  # noqa: F403  (what is not changed below)

HERE = pathlib.Path(__file__).resolve().parent


def _command() -> None:
    root = HERE.parent.parent
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "-p", "rackmem-cli"], cwd=root, check=True
    )
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    shutil.copy2(root / target / "release" / "rackmem", _scripts() / "rackmem")


def _scripts() -> pathlib.Path:
    """Where the command has to be; maturin wants the folder before there is one."""
    scripts = HERE / "rackmem.data" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    return scripts


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):  # type: ignore[no-untyped-def]
    _scripts()
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):  # type: ignore[no-untyped-def]
    _scripts()
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _command()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
