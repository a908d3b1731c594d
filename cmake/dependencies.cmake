# What is taken from the system: packages.txt names the Debian packages.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq>=4.3.4)
pkg_check_modules(CZMQ REQUIRED IMPORTED_TARGET libczmq>=4.2.1)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium>=1.0.18)
pkg_check_modules(FYAML REQUIRED IMPORTED_TARGET libfyaml>=0.7.12)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
# msgpack-c's module is "msgpack" in Debian 12 and "msgpack-c" upstream.
pkg_search_module(MSGPACK REQUIRED IMPORTED_TARGET msgpack-c msgpack)
