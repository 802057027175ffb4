// In the place of the WebAssembly where a server simulates.

export default new Uint8Array();
