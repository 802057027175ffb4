// Perfetto's trace_processor as WebAssembly, driven as its own page drives it: a worker with a port, over which messages of
// protos/perfetto/trace_processor/trace_processor.proto go.
//
//   const processor = await open(DIRECTORY_OF_ENGINE);  processor.load(BYTES);  processor.query(SQL) -> [{column: value}]
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

// Numbers of fields and of requests, as in that file.
const STREAM_MESSAGE = 1;
const REQUEST = 2, INVALID_REQUEST = 4, FATAL_ERROR = 5;
const APPEND_DATA = 101, QUERY_ARGS = 103, APPEND_RESULT = 201, QUERY_RESULT = 203;
const SQL = 1, APPEND_ERROR = 2;
const COLUMN_NAMES = 1, QUERY_ERROR = 2, BATCH = 3;
const CELL_KINDS = 1, VARINTS = 2, FLOATS = 3, STRINGS = 5;
const [NULL, VARINT, FLOAT, STRING] = [1, 2, 3, 4];
const [APPEND, FINALIZE, QUERY] = [1, 2, 3];

function varint(value) {
  const bytes = [];
  let left = BigInt(value);
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left > 0n ? low | 0x80 : low);
  } while (left > 0n);
  return Buffer.from(bytes);
}

const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, content) => Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);

// Calls back with the number of each field and its content: a BigInt or bytes.
function* fields(buffer) {
  let at = 0;
  while (at < buffer.length) {
    let key, length;
    [key, at] = read(buffer, at);
    const field = Number(key >> 3n), kind = Number(key & 7n);
    if (kind === 0) {
      let value;
      [value, at] = read(buffer, at);
      yield [field, value];
      continue;
    }
    if (kind === 2) [length, at] = read(buffer, at);
    else length = kind === 1 ? 8n : 4n;
    yield [field, buffer.subarray(at, at + Number(length))];
    at += Number(length);
  }
}

function read(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n, at++) {
    value |= BigInt(buffer[at] & 0x7f) << shift;
    if (buffer[at] < 0x80) return [BigInt.asIntN(64, value), at + 1];
  }
}

function varints(buffer) {
  const values = [];
  for (let at = 0, value; at < buffer.length; values.push(value)) [value, at] = read(buffer, at);
  return values;
}

/** The engine in this directory, as a worker of a browser would have it. */
export async function open(directory) {
  const scope = {
    console: { log() {}, warn() {}, error: console.error },
    TextDecoder, TextEncoder, URL, setTimeout, performance, crypto,
    WorkerGlobalScope: class {},
    importScripts() {},
    location: { href: "http://localhost/" },
    XMLHttpRequest: class {
      open(_method, url) { this.url = url; }
      send() { this.response = new Uint8Array(fs.readFileSync(path.join(directory, path.basename(this.url)))); }
    },
  };
  scope.self = scope.globalThis = scope;
  vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), vm.createContext(scope));
  const answers = [];
  const port = { postMessage: (message) => answers.push(Buffer.from(message)) };
  scope.onmessage({ data: port });
  await new Promise((resolve) => setTimeout(resolve, 0));
  let sequence = 0;

  // What is answered to a message; it is there when the call returns.
  function ask(request, ...arguments_) {
    const message = Buffer.concat([number(1, ++sequence), number(REQUEST, request), ...arguments_]);
    // The engine accepts the array of its own realm only.
    const data = vm.runInContext("(length) => new Uint8Array(length)", scope)(bytes(STREAM_MESSAGE, message).length);
    data.set(bytes(STREAM_MESSAGE, message));
    port.onmessage({ data });
    const stream = Buffer.concat(answers.splice(0));
    const results = [];
    for (const [, answer] of fields(stream)) {
      for (const [field, content] of fields(answer)) {
        if (field === FATAL_ERROR) throw new Error(content.toString());
        if (field === INVALID_REQUEST) throw new Error(`request ${request} is unknown to this trace processor`);
        results.push([field, content]);
      }
    }
    return results;
  }

  function load(trace) {
    for (const [field, content] of [...ask(APPEND, bytes(APPEND_DATA, trace)), ...ask(FINALIZE)]) {
      if (field !== APPEND_RESULT) continue;
      for (const [inner, error] of fields(content)) if (inner === APPEND_ERROR) throw new Error(error.toString());
    }
  }

  function query(sql) {
    const columns = [], cells = [];
    for (const [field, content] of ask(QUERY, bytes(QUERY_ARGS, bytes(SQL, Buffer.from(sql))))) {
      if (field !== QUERY_RESULT) continue;
      for (const [inner, value] of fields(content)) {
        if (inner === QUERY_ERROR) throw new Error(`${value}\n${sql}`);
        if (inner === COLUMN_NAMES) columns.push(value.toString());
        if (inner === BATCH) cells.push(...cellsOf(value));
      }
    }
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) {
      rows.push(Object.fromEntries(columns.map((name, column) => [name, cells[at + column]])));
    }
    return rows;
  }
  return { load, query };
}

// The cells of a batch, row by row: numbers, texts and nulls in one list each.
function cellsOf(batch) {
  let kinds = [], integers = [], floats = [], texts = [];
  for (const [field, content] of fields(batch)) {
    if (field === CELL_KINDS) kinds = varints(content).map(Number);
    if (field === VARINTS) integers = varints(content);
    if (field === FLOATS) for (let at = 0; at < content.length; at += 8) floats.push(content.readDoubleLE(at));
    if (field === STRINGS) texts = content.toString().split("\0");
  }
  return kinds.map((kind) => {
    switch (kind) {
      case NULL: return null;
      case VARINT: return Number(integers.shift());
      case FLOAT: return floats.shift();
      case STRING: return texts.shift();
      default: throw new Error(`a cell of kind ${kind}`);
    }
  });
}
