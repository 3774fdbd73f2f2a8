import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * A copy of the built daemon without what it could answer a claim without: events, the check of the body and of fields that
 * it does not have, ETags. Answers its command line's main file. The copy is looked at by nothing but measurements.
 */
export const leanAssembly = (): string => {
  // Below node_modules, where packages are found as from the root folder.
  const folder = resolve('node_modules/.sandpool-lean');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  cpSync(resolve('dist'), join(folder, 'dist'), { recursive: true });
  for (const shared of ['package.json', 'config', 'native', 'bin']) symlinkSync(resolve(shared), join(folder, shared));
  for (const [module, text] of Object.entries(LEAN)) {
    const path = join(folder, 'dist', `${module}.js`);
    renameSync(path, path.replace(/\.js$/, '-whole.js'));
    writeFileSync(path, text);
  }
  return join(folder, 'dist/cli/main.js');
};

/** What stands in the place of a module; the whole one stays beside it. */
const LEAN: Readonly<Record<string, string>> = {
  'actors/supervisor': `
    import { Supervisor as Whole } from './supervisor-whole.js';
    export * from './supervisor-whole.js';
    export class Supervisor extends Whole { constructor({ events, ...deps }) { super(deps); } }`,
  'http/validation': `
    import { check as whole } from './validation-whole.js';
    import { ClaimBody } from './schemas/sandboxes.js';
    export const check = (schema, value) => schema === ClaimBody ? value : whole(schema, value);`,
  'http/unknown-fields': `
    export * from './unknown-fields-whole.js';
    export const unknownFieldWarnings = () => undefined;`,
  'http/entity-tag': `
    export * from './entity-tag-whole.js';
    export const entityTag = (revision) => '"' + revision + '-0000000000000000"';`,
};
