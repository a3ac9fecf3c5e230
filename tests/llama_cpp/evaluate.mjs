// node evaluate.mjs < {"model": FILE, "texts": [...], "ids": [[...], ...]}: what llama.cpp makes of a GGUF file, as JSON: the
// tokens of each text without special ones, and for each list of ids the loss of every id but the first.
import fs from "node:fs";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const {model: modelPath, texts, ids} = JSON.parse(fs.readFileSync(0, "utf8"));
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 2});
const model = await llama.loadModel({modelPath});
const all = {generateNext: {probabilities: true, options: {temperature: 1, topK: 0, topP: 1, minP: 0}}};
// Their sum is 1 but for f32's rounding, which is 2e-4 over 32,000 tokens.
const sum = (probabilities) => [...probabilities.values()].reduce((total, one) => total + one, 0);
const losses = [];
for (const list of ids) {
    // Caches in f32, so that only the weights are rounded.
    const context = await model.createContext({contextSize: 256, flashAttention: false, experimentalKvCacheKeyType: "F32",
                                               experimentalKvCacheValueType: "F32", swaFullCache: true});
    const found = await context.getSequence().controlledEvaluate(list.slice(0, -1).map((id) => [id, all]));
    losses.push(found.map(({next}, i) => Math.log(sum(next.probabilities) / next.probabilities.get(list[i + 1]))));
    await context.dispose();
}
const answer = {tokens: texts.map((text) => model.tokenize(text, false)), losses,
                adds_beginning: model.tokens.shouldPrependBosToken, beginning: model.tokens.bos, end: model.tokens.eos};
fs.writeSync(1, JSON.stringify(answer) + "\n");
process.exit(0);
