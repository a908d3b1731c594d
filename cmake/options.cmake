# How everything is compiled.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # with assert(), unlike Release

# -O3 unrolls the short loops of small networks and is slower there. What a
# debugger needs changes no instruction; `cmake --install --strip` leaves it out.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG")

option(LOCKSTEP_TESTS "build the tests, examples and benchmarks" ON)
option(LOCKSTEP_WERROR "make warnings errors" OFF)
set(LOCKSTEP_SANITIZE "" CACHE STRING "for -fsanitize=, as address,undefined")

add_compile_definitions(_POSIX_C_SOURCE=200809L)
# No interposition: calls inside the library need not go through its PLT.
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow
                    "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>"
                    "$<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>"
                    -Wvla -fno-omit-frame-pointer -fno-semantic-interposition)
if(LOCKSTEP_WERROR)
    add_compile_options(-Werror)
endif()
if(LOCKSTEP_SANITIZE)
    add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE}
                        -fno-sanitize-recover=all)
    # lld links the many programs of the tests in half of the time.
    add_link_options(-fsanitize=${LOCKSTEP_SANITIZE}
                     $<$<C_COMPILER_ID:Clang>:-fuse-ld=lld>)
endif()
