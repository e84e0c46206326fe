// Compiles the schema files that it is given, each alone, in Ajv's strict mode; exit code 1 if one does not.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

let failed = 0;
for (const file of process.argv.slice(2)) {
  try {
    const ajv = new Ajv2020.default({ strict: true });
    addFormats.default(ajv);
    ajv.compile(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    failed += 1;
    console.error(`${basename(file)}: ${error.message}`);
  }
}
console.log(`Ajv: ${process.argv.length - 2 - failed} schemas compiled, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
