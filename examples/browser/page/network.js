// The network: network.wasm computes integers, and data.json says what they mean.

// A time is measured in several spans of many runs each: browsers' clocks tick only every 0.1 ms or
// so, and other programs disturb some of the spans.
const spans = 5, spanMilliseconds = 4;

async function fetched(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
  return response;
}

export class Network {
  static async load() {
    const [wasm, data] = await Promise.all([
      fetched('network.wasm').then((file) => file.arrayBuffer()),
      fetched('data.json').then((file) => file.json()),
    ]);
    const network = new Network();
    network.data = data;
    const page = {trace: (step, at, size) => network.codes.set(step, network.bytes(at, size).slice())};
    const {instance} = await WebAssembly.instantiate(wasm, {page});
    network.wasm = instance.exports;
    return network;
  }

  bytes(at, size) {
    return new Uint8Array(this.wasm.memory.buffer, at, size);
  }

  // Runs the network. Returns the ten output integers (minus their zero point), and a map from a step's number to its codes.
  run(pixels) {
    this.codes = new Map();
    this.bytes(this.wasm.input_at(), pixels.length).set(pixels);
    this.wasm.run(1);
    const outputs = new Int32Array(this.wasm.memory.buffer, this.wasm.outputs_at(), 10);
    const {zero_point: zero} = this.data.output;
    return {outputs: Array.from(outputs, (integer) => integer - zero), codes: this.codes};
  }

  // Microseconds of a run: the smallest mean of the spans.
  time(pixels) {
    this.bytes(this.wasm.input_at(), pixels.length).set(pixels);
    const means = Array.from({length: spans}, () => {
      const begin = performance.now();
      let runs = 0, passed = 0;
      for (; passed < spanMilliseconds; passed = performance.now() - begin, ++runs) this.wasm.run(0);
      return passed / runs;
    });
    return 1000 * Math.min(...means);
  }

  // softmax(scale * integer)
  probabilities(outputs) {
    const logits = outputs.map((integer, i) => integer * this.data.output.scale[i]);
    const largest = Math.max(...logits);
    const powers = logits.map((logit) => Math.exp(logit - largest));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }
}
