import ffi = require('ffi-rs')

const LIBC = 'libc'
// An empty path is the program itself, which contains the system's library.
ffi.open({ library: LIBC, path: '' })

const { I32, I64, U8Array, String: Text } = ffi.DataType

const typeOf = (value: number | string | Uint8Array): ffi.FieldType =>
  typeof value === 'number' ? I64 : typeof value === 'string' ? Text : U8Array

/** Calls a function of the system's library that returns an int. Buffers are passed by address. */
function libc(funcName: string, ...paramsValue: (number | string | Uint8Array)[]): number {
  return ffi.load({ library: LIBC, funcName, retType: I32, paramsType: paramsValue.map(typeOf), paramsValue })
}

export = libc
