// Runs the official Node clients against a service of Formwork whose model's first answer is wrong.
//
// Usage: node clients.mjs URL, in a folder with node_modules. Prints a line for each check; exits with 1 if one fails.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Packages are those of the folder that this runs in, wherever the script is.
const require = createRequire(join(process.cwd(), "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const version = (name) => JSON.parse(readFileSync(join("node_modules", name, "package.json"), "utf8")).version;

const url = process.argv[2];
const OpenAI = (await load("openai")).default;
const { zodResponseFormat, zodTextFormat, zodFunction } = await load("openai/helpers/zod");
const { z } = await load("zod");
const { APICallError, generateObject, generateText, NoObjectGeneratedError, Output, streamObject, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const Person = z.object({ name: z.string(), age: z.number().int().max(150) });
const user = (act) => [{ role: "user", content: `${act}: Maria, 34, moved to Lisbon.` }];

function assert(condition, message) {
  if (!condition) throw new Error(message);
}

function isMaria(person) {
  assert(person?.name === "Maria" && person?.age === 34, `found ${JSON.stringify(person)}`);
}

async function raised(kind, call, status) {
  let found;
  try {
    found = await call();
  } catch (error) {
    assert(kind.isInstance?.(error) ?? error instanceof kind, `${error?.constructor?.name}: ${error}`);
    const seen = error.status ?? error.statusCode;
    assert(status === undefined || seen === status, `status ${seen}`);
    return error;
  }
  throw new Error(`expected ${kind.name}, got ${JSON.stringify(found)}`);
}

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });
const parse = (act) =>
  client.chat.completions.parse({ model: "primary", messages: user(act), response_format: zodResponseFormat(Person, "person") });

const openai = {
  "a typed object after a wrong answer": async () => isMaria((await parse("mend")).choices[0].message.parsed),
  "the same, streamed": async () => {
    const stream = client.chat.completions.stream({
      model: "primary",
      messages: user("mend"),
      response_format: zodResponseFormat(Person, "person"),
    });
    isMaria((await stream.finalChatCompletion()).choices[0].message.parsed);
  },
  "a tool": async () => {
    const tools = [zodFunction({ name: "person", parameters: Person })];
    const got = await client.chat.completions.parse({
      model: "primary",
      messages: user("mend"),
      tools,
      tool_choice: "required",
    });
    isMaria(got.choices[0].message.tool_calls[0].function.parsed_arguments);
  },
  responses: async () => {
    const text = { format: zodTextFormat(Person, "person") };
    isMaria((await client.responses.parse({ model: "primary", input: user("mend"), text })).output_parsed);
  },
  "responses, streamed": async () => {
    const text = { format: zodTextFormat(Person, "person") };
    const stream = client.responses.stream({ model: "primary", input: user("mend"), text });
    isMaria((await stream.finalResponse()).output_parsed);
  },
  "a refusal": async () => assert((await parse("refuse")).choices[0].message.refusal === "I will not.", "no refusal"),
  "a truncation": async () => raised(OpenAI.OpenAIError, () => parse("cut")),
  "an unknown model, 404": async () =>
    raised(OpenAI.NotFoundError, () => client.chat.completions.create({ model: "other", messages: user("mend") }), 404),
  "no valid answer, 422 with violations": async () => {
    const error = await raised(OpenAI.UnprocessableEntityError, () => parse("never"), 422);
    assert(error.error.violations[0].path === "$.age", JSON.stringify(error.error));
  },
  "busy, 429": async () => raised(OpenAI.RateLimitError, () => parse("busy"), 429),
  "down, 503": async () => raised(OpenAI.InternalServerError, () => parse("down"), 503),
};

const provider = createOpenAICompatible({
  name: "formwork",
  baseURL: `${url}/v1`,
  apiKey: "any",
  supportsStructuredOutputs: true,
});
const model = provider("primary");
const object = (act, more) => generateObject({ model, schema: Person, prompt: `${act}: Maria, 34`, maxRetries: 0, ...more });

const ai = {
  "an object after a wrong answer": async () => isMaria((await object("mend")).object),
  "the same, streamed": async () => {
    const stream = streamObject({ model, schema: Person, prompt: "mend: Maria, 34", maxRetries: 0 });
    let last;
    for await (const part of stream.partialObjectStream) last = part;
    isMaria(last);
    isMaria(await stream.object);
  },
  "an output beside text": async () => {
    const got = await generateText({
      model,
      prompt: "mend: Maria, 34",
      maxRetries: 0,
      ...(Output ? { output: Output.object({ schema: Person }), experimental_output: Output.object({ schema: Person }) } : {}),
    });
    isMaria(got.output ?? got.experimental_output);
  },
  "a forced tool": async () => {
    const got = await generateText({
      model,
      prompt: "mend: Maria, 34",
      maxRetries: 0,
      tools: { person: tool({ description: "Saves a person", inputSchema: Person }) },
      toolChoice: "required",
    });
    isMaria(got.toolCalls[0].input);
  },
  "no valid answer, 422": async () => raised(APICallError, () => object("never"), 422),
  "no valid answer is not paid for twice": async () => {
    const error = await raised(APICallError, () => object("never", { maxRetries: 2 }), 422);
    assert(error.isRetryable === false, "the client would retry");
  },
  "an unknown model, 404": async () => raised(APICallError, () => object("mend", { model: provider("other") }), 404),
  "a truncation": async () => raised(NoObjectGeneratedError, () => object("cut")),
  "busy, 429": async () => raised(APICallError, () => object("busy"), 429),
  "down, 503": async () => raised(APICallError, () => object("down"), 503),
};

let failed = 0;
for (const [name, checks] of Object.entries({ openai, ai })) {
  for (const [check, run] of Object.entries(checks)) {
    try {
      await run();
      console.log(`ok    ${name} ${version(name)} (Node): ${check}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name} ${version(name)} (Node): ${check}: ${error?.constructor?.name}: ${error?.message}`);
    }
  }
}
process.exit(failed ? 1 : 0);
