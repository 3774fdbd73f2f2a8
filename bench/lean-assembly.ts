import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * A copy of the built daemon without what it could answer a claim without: events, the check of the
 * body and of fields that it does not have, ETags. Answers its command line's main file. The copy
 * is looked at by nothing but measurements.
 */
export const leanAssembly = (): string => assemblyWith('lean', LEAN);

/**
 * A copy of the built daemon in which tenants share nothing fairly: requests begin as they come, and
 * what waits for a slot is begun in the order in which it came. Answers its command line's main
 * file.
 */
export const unsharedAssembly = (): string => assemblyWith('unshared', UNSHARED);

/**
 * A copy of the built daemon whose instances are there at once and are nothing: what it costs to
 * have many, without what they cost themselves. Those of a pool whose name begins with `claimed-`
 * are claimed by its owner at once, as though another replica had answered. SIGUSR2 has it collect
 * its garbage and write the bytes of its heap, with those that it holds beside it, into HEAP_FILE of
 * its folder. Answers its command line's main file.
 */
export const scriptedAssembly = (): string => assemblyWith('scripted', SCRIPTED);

export const HEAP_FILE = 'heap-used';

const assemblyWith = (name: string, modules: Readonly<Record<string, string>>): string => {
  // Below node_modules, where packages are found as from the root folder.
  const folder = resolve(`node_modules/.sandpool-${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  cpSync(resolve('dist'), join(folder, 'dist'), { recursive: true });
  for (const shared of ['package.json', 'config', 'native', 'bin'])
    symlinkSync(resolve(shared), join(folder, shared));
  for (const [module, text] of Object.entries(modules)) {
    const path = join(folder, 'dist', `${module}.js`);
    renameSync(path, path.replace(/\.js$/, '-whole.js'));
    writeFileSync(path, text);
  }
  return join(folder, 'dist/cli/main.js');
};

/** What stands in the place of a module; the whole one stays beside it. */
type StandIns = Readonly<Record<string, string>>;

const LEAN: StandIns = {
  'actors/sandbox/supervisor': `
    import { Supervisor as Whole } from './supervisor-whole.js';
    export * from './supervisor-whole.js';
    export class Supervisor extends Whole { constructor({ events, ...deps }) { super(deps); } }`,
  'http/router/validation': `
    import { check as whole } from './validation-whole.js';
    import { ClaimBody } from '../resources/sandboxes/schema.js';
    export const check = (schema, value) => schema === ClaimBody ? value : whole(schema, value);`,
  'http/router/unknown-fields': `
    export * from './unknown-fields-whole.js';
    export const unknownFieldWarnings = () => undefined;`,
  'http/router/entity-tag': `
    export * from './entity-tag-whole.js';
    export const entityTag = (revision) => '"' + revision + '-0000000000000000"';`,
};

const UNSHARED: StandIns = {
  'http/limits/loop-turns': `
    export class LoopTurns { take() { return undefined; } }`,
  'http/limits/costly-turns': `
    const REQUEST = { isWatched: false, begin() {}, working() {}, worked() {} };
    export class CostlyTurns { request() { return REQUEST; } }`,
  'lib/fair-slots': `
    export class FairSlots {
      #most; #waiting = new Set(); #underWay = 0;
      constructor({ most }) { this.#most = most; }
      request(tenant, begin) {
        const mine = () => {
          this.#underWay += 1;
          let isReleased = false;
          begin(() => {
            if (isReleased) return;
            isReleased = true;
            this.#underWay -= 1;
            this.#serve();
          });
        };
        this.#waiting.add(mine);
        this.#serve();
        return () => { this.#waiting.delete(mine); };
      }
      #serve() {
        for (const next of this.#waiting) {
          if (this.#underWay >= this.#most()) return;
          this.#waiting.delete(next);
          next();
        }
      }
    }`,
};

const SCRIPTED: StandIns = {
  'embedded/driver/sandbox-driver': `
    import { renameSync, writeFileSync } from 'node:fs';
    import { join } from 'node:path';
    import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm';
    export class EmbeddedSandboxDriver {
      #records = new Map(); #clock; #report;
      constructor({ clock, dataDir }) {
        this.#clock = clock;
        process.on('SIGUSR2', () => {
          setFlagsFromString('--expose-gc');
          const collect = runInNewContext('gc');
          collect();
          collect();
          const { heapUsed, external } = process.memoryUsage();
          writeFileSync(join(dataDir, 'heap-unfinished'), String(heapUsed + external));
          renameSync(join(dataDir, 'heap-unfinished'), join(dataDir, '${HEAP_FILE}'));
        });
      }
      describe() { return { isolation: 'scripted', warnings: [], problems: [] }; }
      async watch(report) { this.#report = report; }
      check() {}
      expect() {}
      async launch({ record }) {
        const born = this.#write({ ...record, state: 'idle' }, '1');
        setImmediate(() => {
          if (born.poolName.startsWith('claimed-')) this.#write({ ...born, state: 'claimed', claim: { owner: born.poolOwner, claimedAt: this.#clock.now(), idleTimeoutMs: 0, maxLifetimeMs: 0 } }, '2');
          this.#report(this.#fact(born.id));
        });
        return born;
      }
      async claim(seen, claim) { return this.#write({ ...seen, state: 'claimed', claim }, seen.revision + '1'); }
      async retire(id) { this.#end(id); }
      async release(id) { this.#end(id); }
      async forget() {}
      async read(id) { return this.#fact(id); }
      async confirm() { return undefined; }
      async idle() { return []; }
      async findClaimByKey() { return []; }
      async caughtUp() {}
      async stop() {}
      #write(record, revision) {
        const written = { ...record, revision };
        this.#records.set(written.id, written);
        return written;
      }
      #end(id) {
        this.#records.delete(id);
        setImmediate(() => this.#report(this.#fact(id)));
      }
      #fact(id) {
        const record = this.#records.get(id);
        return { id, record, vitals: record ? { kind: 'available', startedAt: record.createdAt } : { kind: 'gone', exitCode: 0, reason: 'ended' } };
      }
    }`,
};
