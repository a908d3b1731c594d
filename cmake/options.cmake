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
    # Of what a debugger needs only what reports need: functions and lines.
    add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE}
                        -fno-sanitize-recover=all
                        $<$<C_COMPILER_ID:Clang>:-gline-tables-only>)
    add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
# lld links the many programs of the tests in a third of the time.
find_program(LOCKSTEP_LLD ld.lld)
if(LOCKSTEP_TESTS AND LOCKSTEP_LLD)
    add_link_options(-fuse-ld=lld)
endif()
