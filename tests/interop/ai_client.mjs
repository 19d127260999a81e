// The npm package `ai` as a client: reads jobs as JSON from standard input, writes the results as JSON.
// Imports are resolved from the directory in SIGWIRE_INTEROP_NODE.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SIGWIRE_INTEROP_NODE, "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));

const { generateText, streamText, generateObject, tool, jsonSchema, stepCountIs } = await load("ai");

const MODELS = {
  openai: async (url) => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: url, apiKey: "any" }).chat("gpt-4.1"),
  "openai-responses": async (url) =>
    (await load("@ai-sdk/openai")).createOpenAI({ baseURL: url, apiKey: "any" }).responses("gpt-5"),
  anthropic: async (url) =>
    (await load("@ai-sdk/anthropic")).createAnthropic({ baseURL: `${url}/v1`, apiKey: "any" })("claude-sonnet-4-5"),
  gemini: async (url) =>
    (await load("@ai-sdk/google")).createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: "any" })("gemini-3-flash"),
  compatible: async (url) =>
    (await load("@ai-sdk/openai-compatible")).createOpenAICompatible({
      name: "compatible", baseURL: url, supportsStructuredOutputs: true, includeUsage: true,
    })("m"),
};

const add = tool({
  description: "Add two numbers.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer" } },
    required: ["a", "b"],
    additionalProperties: false,
  }),
  execute: async ({ a, b }) => a + b,
});
const city = jsonSchema({
  type: "object",
  properties: { name: { type: "string" }, people: { type: "integer" } },
  required: ["name", "people"],
  additionalProperties: false,
});

const result = (value) => ({
  text: value.text,
  reasoning: value.reasoningText ?? null,
  finish: value.finishReason,
  usage: value.usage,
  steps: value.steps.map((step) => ({
    calls: step.toolCalls.map((call) => call.input),
    results: step.toolResults.map((result) => result.output),
  })),
});

const TASKS = {
  text: async (common) => result(await generateText({ ...common, tools: { add }, stopWhen: stepCountIs(3) })),
  stream: async (common) => {
    const errors = [];
    const reply = streamText({ ...common, tools: { add }, stopWhen: stepCountIs(3), onError: ({ error }) => errors.push(error) });
    const deltas = [];
    for await (const part of reply.fullStream) {
      if (part.type === "text-delta") deltas.push(part.text ?? part.delta);
    }
    if (errors.length) throw errors[0];
    const [text, reasoningText, finishReason, usage, steps] = await Promise.all([
      reply.text, reply.reasoningText, reply.finishReason, reply.usage, reply.steps,
    ]);
    return { ...result({ text, reasoningText, finishReason, usage, steps }), deltas };
  },
  object: async (common) => ({ object: (await generateObject({ ...common, schema: city })).object }),
};

async function run({ wire, url, task }) {
  try {
    const model = await MODELS[wire](url);
    return await TASKS[task]({ model, prompt: "Hi", maxRetries: 0 });
  } catch (error) {
    return { error: error.message ?? JSON.stringify(error), status: error.statusCode ?? null, cause: error.cause?.message };
  }
}

let input = "";
for await (const chunk of process.stdin) input += chunk;
const results = [];
for (const job of JSON.parse(input)) results.push(await run(job));
process.stdout.write(JSON.stringify(results));
