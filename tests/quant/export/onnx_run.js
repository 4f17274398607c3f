// Runs ONNX files with ONNX Runtime and compares their outputs with expected ones.
//   node onnx_run.js CASES.json [onnxruntime-node | onnxruntime-web]
// CASES.json: [{"model": path, "optimize": ["disabled", "all"],
//   "inputs": {name: {"type": "uint8", "dims": [2, 3], "file": path}}, "outputs": {the same},
//   "share": 1e-4: so many of the integers of all outputs may differ, by 1; "by": for floats, by so
//   much, "optimized": path: where the optimized graph is written, "batch": samples that run
//   together, "classes": for reals, how many classes a row has: counts rows whose largest element
//   is another one, "name": prints a line for this case, "time": calls to time, of one sample}]
// Prints a line for each output that differs more, and last "N of N equal, D of V values differ".
// The exit status is 1 unless all are equal.
const fs = require('fs');
const ort = require(process.argv[3] || 'onnxruntime-node');

const arrays = {
  uint8: Uint8Array,
  int32: Int32Array,
  int64: BigInt64Array,
  float32: Float32Array
};

function read({type, file}) {
  const bytes = fs.readFileSync(file);
  const copy = new Uint8Array(bytes);  // aligned
  return new arrays[type](copy.buffer, 0, copy.length / arrays[type].BYTES_PER_ELEMENT);
}

// The fault, how many values differ, and of how many.
function compare(wanted, tensor, test) {
  if (tensor === undefined) return ['is missing', 0, 0];
  if (tensor.type !== wanted.type)
    return [`has type ${tensor.type}, expected ${wanted.type}`, 0, 0];
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
  return [
    isFault ? `differs in ${different} of ${values.length}, first at ${first}: ` +
            `${tensor.data[first]}, expected ${values[first]}` :
              '',
    different,
    values.length
  ];
}

// Samples [begin, end) of an input, or of all inputs.
function slice(x, begin, end) {
  const size = x.data.length / x.dims[0];
  return new ort.Tensor(
      x.type, x.data.subarray(begin * size, end * size), [end - begin, ...x.dims.slice(1)]);
}

// Runs all samples, some at a time.
async function run(session, inputs, batch) {
  const first = Object.values(inputs)[0], samples = first.dims[0];
  if (!batch || batch >= samples) return session.run(inputs);
  const parts = {};
  for (let begin = 0; begin < samples; begin += batch) {
    const end = Math.min(begin + batch, samples);
    const some =
        Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, slice(x, begin, end)]));
    for (const [name, y] of Object.entries(await session.run(some)))
      (parts[name] = parts[name] || []).push(y);
  }
  return Object.fromEntries(Object.entries(parts).map(([name, all]) => {
    const data = new arrays[all[0].type](all.reduce((n, y) => n + y.data.length, 0));
    let at = 0;
    for (const y of all) {
      data.set(y.data, at);
      at += y.data.length;
    }
    return [name, {type: all[0].type, dims: [samples, ...all[0].dims.slice(1)], data}];
  }));
}

function largest(values, begin, count) {
  let best = 0;
  for (let i = 1; i < count; ++i)
    if (values[begin + i] > values[begin + best]) best = i;
  return best;
}

// How far reals are from the expected ones, and how many rows have another largest element.
function describe(test, outputs) {
  const [name, wanted] = Object.entries(test.outputs)[0];
  const values = read(wanted), got = outputs[name].data;
  let most = 0, size = 0, rows = 0;
  for (let i = 0; i < values.length; ++i) {
    most = Math.max(most, Math.abs(values[i] - got[i]));
    size = Math.max(size, Math.abs(values[i]));
  }
  for (let i = 0; i < values.length; i += test.classes)
    rows += largest(values, i, test.classes) !== largest(got, i, test.classes);
  return `, largest difference ${(most / size).toExponential(1)} of the largest, ` +
      `another class in ${rows} of ${values.length / test.classes}`;
}

// The median time of a call of one sample, in microseconds.
async function time(session, inputs, calls) {
  const one = Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, slice(x, 0, 1)]));
  const times = [];
  for (let i = 0; i < calls; ++i) {
    const begin = process.hrtime.bigint();
    await session.run(one);
    times.push(Number(process.hrtime.bigint() - begin) / 1e3);
  }
  return times.sort((a, b) => a - b)[calls >> 1].toFixed(1);
}

(async () => {
  let all = 0, equal = 0, different = 0, total = 0;
  for (const test of JSON.parse(fs.readFileSync(process.argv[2]))) {
    const inputs = {};
    for (const [name, x] of Object.entries(test.inputs))
      inputs[name] = new ort.Tensor(x.type, read(x), x.dims);
    for (const level of test.optimize) {
      ++all;
      let session, outputs = {}, faults = [];
      try {
        session = await ort.InferenceSession.create(fs.readFileSync(test.model), {
          graphOptimizationLevel: level,
          intraOpNumThreads: 1,
          interOpNumThreads: 1,
          logSeverityLevel: 3,
          ...(test.optimized ? {optimizedModelFilePath: test.optimized} : {})
        });
        outputs = await run(session, inputs, test.batch);
        for (const [name, y] of Object.entries(test.outputs)) {
          const [fault, count, of] = compare(y, outputs[name], test);
          faults.push([name, fault]);
          different += count;
          total += of;
          if (test.name) {
            const more = test.classes ? describe(test, outputs) : '';
            const took =
                test.time ? `, ${await time(session, inputs, test.time)} us for a sample` : '';
            const counts =
                test.by === undefined ? `${count} of ${of} values differ` : `${of} values`;
            console.log(`${test.name} (${level}): ${counts}${more}${took}`);
          }
        }
      } catch (error) {
        faults = [['', String(error)]];
      }
      if (session) await session.release();
      for (const [name, fault] of faults)
        if (fault) console.log(`${test.model} (${level}): ${name} ${fault}`);
      if (faults.every(([, fault]) => !fault)) ++equal;
    }
  }
  console.log(`${equal} of ${all} equal, ${different} of ${total} values differ`);
  process.exit(equal === all ? 0 : 1);
})();
