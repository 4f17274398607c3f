// Runs ONNX files with ONNX Runtime and compares their outputs with expected ones.
//   node onnx_run.js CASES.json [onnxruntime-node | onnxruntime-web]
// CASES.json: [{"model": path, "optimize": ["disabled", "all"],
//   "inputs": {name: {"type": "uint8", "dims": [2, 3], "file": path}}, "outputs": {the same},
//   "share": 1e-4: so many of the integers of all outputs may differ, by 1; "by": for floats, by so much,
//   "optimized": path: where the optimized graph is written}]
// Prints a line for each output that differs more, and last "N of N equal, D of V values differ". The exit status is 1
// unless all are equal.
const fs = require('fs');
const ort = require(process.argv[3] || 'onnxruntime-node');

const arrays = {uint8: Uint8Array, int32: Int32Array, int64: BigInt64Array, float32: Float32Array};

function read({type, file}) {
  const bytes = fs.readFileSync(file);
  const copy = new Uint8Array(bytes);  // aligned
  return new arrays[type](copy.buffer, 0, copy.length / arrays[type].BYTES_PER_ELEMENT);
}

// The fault, how many values differ, and of how many.
function compare(wanted, tensor, test) {
  if (tensor === undefined) return ['is missing', 0, 0];
  if (tensor.type !== wanted.type) return [`has type ${tensor.type}, expected ${wanted.type}`, 0, 0];
  if (String(tensor.dims) !== String(wanted.dims))
    return [`has dims [${tensor.dims}], expected [${wanted.dims}]`, 0, 0];
  const values = read(wanted);
  let different = 0, first = -1, far = false;
  for (let i = 0; i < values.length; ++i) {
    const x = values[i], y = tensor.data[i];
    if (x === y || Object.is(x, y)) continue;
    if (test.by !== undefined && Math.abs(x - y) <= test.by) continue;
    if (!(Math.abs(Number(x) - Number(y)) <= 1)) far = true;
    if (first < 0) first = i;
    ++different;
  }
  const isFault = different > 0 && (far || different > (test.share || 0) * values.length);
  return [isFault ? `differs in ${different} of ${values.length}, first at ${first}: ` +
                    `${tensor.data[first]}, expected ${values[first]}` : '', different, values.length];
}

(async () => {
  let all = 0, equal = 0, different = 0, total = 0;
  for (const test of JSON.parse(fs.readFileSync(process.argv[2]))) {
    const inputs = {};
    for (const [name, x] of Object.entries(test.inputs)) inputs[name] = new ort.Tensor(x.type, read(x), x.dims);
    for (const level of test.optimize) {
      ++all;
      let session, outputs = {}, faults = [];
      try {
        session = await ort.InferenceSession.create(fs.readFileSync(test.model), {
          graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3,
          ...(test.optimized ? {optimizedModelFilePath: test.optimized} : {})});
        outputs = await session.run(inputs);
        for (const [name, y] of Object.entries(test.outputs)) {
          const [fault, count, of] = compare(y, outputs[name], test);
          faults.push([name, fault]);
          different += count;
          total += of;
        }
      } catch (error) {
        faults = [['', String(error)]];
      }
      if (session) await session.release();
      for (const [name, fault] of faults) if (fault) console.log(`${test.model} (${level}): ${name} ${fault}`);
      if (faults.every(([, fault]) => !fault)) ++equal;
    }
  }
  console.log(`${equal} of ${all} equal, ${different} of ${total} values differ`);
  process.exit(equal === all ? 0 : 1);
})();
