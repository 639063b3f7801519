"""Adds MLX's native library, its Metal kernels, and modules that the library imports by name."""

from PyInstaller.utils.hooks import collect_data_files, collect_dynamic_libs, collect_submodules

binaries = collect_dynamic_libs("mlx")
datas = collect_data_files("mlx", includes=["**/*.metallib"])
hiddenimports = collect_submodules("mlx")
