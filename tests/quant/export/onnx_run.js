// Runs ONNX files with ONNX Runtime and compares their outputs with expected ones.
//   node onnx_run.js CASES.json [onnxruntime-node | onnxruntime-web]
// CASES.json: [{"model": path, "optimize": ["disabled", "all"],
//   "inputs": {name: {"type": "uint8", "dims": [2, 3], "file": path}}, "outputs": {the same}}]
// Prints a line for each output that differs, and last "N of N equal". The exit status is 1 unless all are.
const fs = require('fs');
const ort = require(process.argv[3] || 'onnxruntime-node');

const arrays = {uint8: Uint8Array, int32: Int32Array, int64: BigInt64Array, float32: Float32Array};

function read({type, file}) {
  const bytes = fs.readFileSync(file);
  const copy = new Uint8Array(bytes);  // aligned
  return new arrays[type](copy.buffer, 0, copy.length / arrays[type].BYTES_PER_ELEMENT);
}

function compare(wanted, tensor) {
  if (tensor === undefined) return 'is missing';
  if (tensor.type !== wanted.type) return `has type ${tensor.type}, expected ${wanted.type}`;
  if (String(tensor.dims) !== String(wanted.dims)) return `has dims [${tensor.dims}], expected [${wanted.dims}]`;
  const values = read(wanted);
  let different = 0, first = -1;
  for (let i = 0; i < values.length; ++i) {
    if (Object.is(values[i], tensor.data[i]) || values[i] === tensor.data[i]) continue;
    if (first < 0) first = i;
    ++different;
  }
  return different === 0 ? '' : `differs in ${different} of ${values.length}, first at ${first}: ` +
                                `${tensor.data[first]}, expected ${values[first]}`;
}

(async () => {
  let all = 0, equal = 0;
  for (const test of JSON.parse(fs.readFileSync(process.argv[2]))) {
    const inputs = {};
    for (const [name, x] of Object.entries(test.inputs)) inputs[name] = new ort.Tensor(x.type, read(x), x.dims);
    for (const level of test.optimize) {
      ++all;
      let session, outputs = {}, faults = [];
      try {
        session = await ort.InferenceSession.create(fs.readFileSync(test.model), {
          graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3});
        outputs = await session.run(inputs);
        faults = Object.entries(test.outputs).map(([name, y]) => [name, compare(y, outputs[name])]);
      } catch (error) {
        faults = [['', String(error)]];
      }
      if (session) await session.release();
      for (const [name, fault] of faults) if (fault) console.log(`${test.model} (${level}): ${name} ${fault}`);
      if (faults.every(([, fault]) => !fault)) ++equal;
    }
  }
  console.log(`${equal} of ${all} equal`);
  process.exit(equal === all ? 0 : 1);
})();
