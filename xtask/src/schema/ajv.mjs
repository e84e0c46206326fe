// ajv.mjs DOCUMENTS SCHEMA FILE...: compiles the schema files, each alone, in Ajv's strict mode; exit code 1 if one does not. Then judges the
// documents by the schema, and prints a JSON list of verdicts, in order.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const json = (file) => JSON.parse(readFileSync(file, "utf8"));
const compiled = (file) => {
  const ajv = new Ajv2020.default({ strict: true });
  addFormats.default(ajv);
  return ajv.compile(json(file));
};

const [documents, schema, ...files] = process.argv.slice(2);
let failed = 0;
for (const file of files) {
  try {
    compiled(file);
  } catch (error) {
    failed += 1;
    console.error(`${basename(file)}: ${error.message}`);
  }
}
if (failed > 0) {
  console.error(`Ajv: ${files.length - failed} schemas compiled, ${failed} failed`);
  process.exit(1);
}
const validate = compiled(schema);
console.log(JSON.stringify(json(documents).map((row) => validate(row.document))));
