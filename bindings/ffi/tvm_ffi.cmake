# The folders of tvm-ffi's headers, as TVM_FFI_INCLUDE_DIRS, from the Python package that Python3_EXECUTABLE has.
# SPDX-License-Identifier: Apache-2.0
unset(TVM_FFI_INCLUDE_DIRS)
foreach(option includedir dlpack-includedir)
    execute_process(COMMAND ${Python3_EXECUTABLE} -m tvm_ffi.config --${option} OUTPUT_VARIABLE dir
                    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "the Python package apache-tvm-ffi is needed: "
                "${Python3_EXECUTABLE} -m pip install apache-tvm-ffi")
    endif()
    list(APPEND TVM_FFI_INCLUDE_DIRS ${dir})
endforeach()
