# fuselab_clang: the clang and LLVM 19 static libraries that the JIT needs, as one interface target.
#
# Asked from llvm-config rather than from ClangConfig.cmake: the latter refuses to configure unless every clang tool
# (clang-tidy, clangd, ...) is installed too.
find_program(LLVM_CONFIG NAMES llvm-config-19 HINTS /usr/lib/llvm-19/bin /opt/homebrew/opt/llvm@19/bin)
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "llvm-config-19 was not found: install llvm-19-dev and libclang-19-dev (make setup does it), or pass -DLLVM_CONFIG=")
endif()

function(fuselab_llvm_config out)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(text UNIX_COMMAND "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

fuselab_llvm_config(FUSELAB_LLVM_INCLUDE --includedir)
fuselab_llvm_config(FUSELAB_LLVM_LIBDIR --libdir)
fuselab_llvm_config(FUSELAB_LLVM_VERSION --version)
# clangCodeGen's needs, the native code generator, and ORC.
fuselab_llvm_config(FUSELAB_LLVM_LIBS --link-static --libs native asmparser orcjit jitlink passes coverage lto frontendhlsl
                    frontendopenmp frontendoffloading hipstdpar coroutines instrumentation linker option objcarcopts irreader)
# Polly is named there but packed apart, and nothing here calls it.
list(FILTER FUSELAB_LLVM_LIBS EXCLUDE REGEX "Polly|LLVMExtensions")
fuselab_llvm_config(FUSELAB_LLVM_SYSTEM --link-static --system-libs)
set(FUSELAB_CLANG_LIBS)
foreach(lib Frontend Driver Serialization CodeGen Parse Sema APINotes Analysis Edit AST ASTMatchers Lex Support Basic)
  set(path ${FUSELAB_LLVM_LIBDIR}/libclang${lib}.a)
  if(NOT EXISTS ${path})
    message(FATAL_ERROR "${path} is missing: install libclang-19-dev (make setup does it)")
  endif()
  list(APPEND FUSELAB_CLANG_LIBS ${path})
endforeach()

add_library(fuselab_clang INTERFACE)
target_include_directories(fuselab_clang SYSTEM INTERFACE ${FUSELAB_LLVM_INCLUDE})
target_link_directories(fuselab_clang INTERFACE ${FUSELAB_LLVM_LIBDIR})
target_link_libraries(fuselab_clang INTERFACE ${FUSELAB_CLANG_LIBS} ${FUSELAB_LLVM_LIBS} ${FUSELAB_LLVM_SYSTEM})
message(STATUS "LLVM ${FUSELAB_LLVM_VERSION}: ${FUSELAB_LLVM_LIBDIR}")
