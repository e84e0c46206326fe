// Judges documents by a schema: two files in, a JSON list of verdicts out, in order.
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const [schema, documents] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")));
const validate = new Ajv2020.default({ strict: true }).compile(schema);
console.log(JSON.stringify(documents.map((row) => validate(row.document))));
