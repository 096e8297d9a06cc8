# SPDX-License-Identifier: Apache-2.0
# The Debian package and the tarball: `cpack -G DEB --config build/cpu/CPackConfig.cmake`, and -G TGZ. The tarball of the
# sources: `cpack --config build/cpu/CPackSourceConfig.cmake`.
set(CPACK_PACKAGE_NAME kvspectrum)
set(CPACK_PACKAGE_CONTACT "The kvspectrum authors")
set(CPACK_PACKAGE_VENDOR kvspectrum)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The programs load these at run time, so that their files do not name them.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-openmp | libopenblas0, liblapacke")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "librsvg2-bin, fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS openmpi-bin)
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION})
# What .gitignore names, git's own files, caches of the lint's tools, and this build wherever it is.
set(CPACK_SOURCE_IGNORE_FILES "^${PROJECT_SOURCE_DIR}/(\\\\.git|build|out|models|\\\\.cache|\\\\.venv)(/|$)"
  "/__pycache__/" "/\\\\.(ruff|mypy)_cache/" "\\\\.(partial|journal)$" "^${PROJECT_BINARY_DIR}/")
include(CPack)
