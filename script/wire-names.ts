/**
 * Writes test/architecture/wire-names.json: every name by which programs of different versions, or
 * people's own programs, meet what the daemon writes. With `--check` it writes nothing and ends with
 * 1 where the file is stale.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { LOG_EVENTS } from '../src/contracts/log-events.ts';
import { METRICS, type MetricSpec } from '../src/contracts/metric-catalogue.ts';
import { ERROR_NOTES } from '../src/http/openapi/error-notes.ts';
import { type ErrorCode, statusOf } from '../src/http/router/error-table.ts';
import type { Tenant } from '../src/model/tenant.ts';
import { keysOf, type Keys } from '../src/redis/keys.ts';
import { scanCode, type ScannedCode } from './source-code.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'test/architecture/wire-names.json');

/** Names by what they belong to; each list sorted. */
export type WireNames = Readonly<Record<string, readonly string[]>>;

export const wireNames = (): WireNames => ({
  'Redis keys and channels': sorted(Object.values(redisKeys())),
  'words in Redis, as the Lua operations write them': luaWords(),
  metrics: Object.entries<MetricSpec>(METRICS)
    .map(([name, { kind, labels }]) => `${name}{${labels.join(',')}} ${kind}`)
    .sort(),
  'labels and annotations of Kubernetes objects': metadataKeys(),
  'fields of custom resources': customResourceFields(),
  'fields of audit lines': auditFields(),
  'log events': logEvents(),
  'codes of log events': Object.keys(LOG_EVENTS).sort(),
  'HTTP error codes': (Object.keys(ERROR_NOTES) as ErrorCode[])
    .map((code) => `${code} ${statusOf(code)}`)
    .sort(),
});

/** As kept in test/architecture/wire-names.json. */
export const keptWireNames = (): WireNames => JSON.parse(readFileSync(FILE, 'utf8')) as WireNames;

const sorted = (names: Iterable<string>): readonly string[] => [...new Set(names)].sort();

/** Every key there is; one that is new does not compile until it is listed. */
const redisKeys = (): Readonly<Record<keyof Keys, string>> => {
  const keys = keysOf('PREFIX');
  const owner: Tenant = { namespace: 'NAMESPACE', team: 'TEAM', user: 'USER' };
  const pool = { owner, uid: 'UID' };
  const ofBucket = (key: string): string => key.replace(/activity-\d+/, 'activity-BUCKET');
  return {
    ...keys,
    usage: keys.usage(owner, 'sandboxes'),
    pendingReservations: keys.pendingReservations(owner, 'sandboxes'),
    waiting: keys.waiting(pool),
    waitingSeen: keys.waitingSeen(pool),
    rebuild: keys.rebuild(owner),
    request: keys.request(owner, 'MARK'),
    requests: keys.requests(owner),
    answers: keys.answers(owner),
    managerRequests: keys.managerRequests(owner),
    managerAnswers: keys.managerAnswers(owner),
    activity: ofBucket(keys.activity('ID')),
    activityBucket: ofBucket(keys.activityBucket(0)),
    working: ofBucket(keys.working('ID')),
    ended: ofBucket(keys.ended('ID')),
    deadLetters: keys.deadLetters('RECEIVER'),
    deadLetterTimes: keys.deadLetterTimes('RECEIVER'),
    rate: keys.rate('NAME'),
    lease: keys.lease(0),
    asked: keys.asked('REPLICA'),
  };
};

/** Ends of keys, fields of hashes and answers; not the commands of Redis. */
const luaWords = (): readonly string[] =>
  sorted(
    filesOf('src/redis/lua', '.lua')
      .flatMap(({ text }) => text.split('\n'))
      .map((line) => line.replace(/--.*$/, ''))
      .flatMap((line) => [...line.matchAll(/'([^']*)'/g)])
      .map(([, word = '']) => word)
      .filter((word) => /[a-z]/.test(word) && !/[%^$[]/.test(word)),
  );

const metadataKeys = (): readonly string[] =>
  sorted(
    filesOf('src/k8s', '.ts').flatMap(({ text }) =>
      [...scanCode(text).withStrings.matchAll(/'((?:[a-z]+\.)?sandpool\.dev\/[\w.-]*)'/g)].map(
        ([, name = '']) => name,
      ),
    ),
  );

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}
interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

const customResourceFields = (): readonly string[] =>
  sorted(
    filesOf('deploy/helm/sandpool/crds', '.yaml').flatMap(({ text }) => {
      const { spec } = parse(text) as Definition;
      return spec.versions.flatMap(({ name, schema }) =>
        fieldsIn(schema.openAPIV3Schema, `${spec.names.kind}/${name}`),
      );
    }),
  );

const fieldsIn = (schema: Schema, path: string): readonly string[] => {
  const { properties = {}, items, additionalProperties: values } = schema;
  return [
    ...Object.entries(properties).flatMap(([name, field]) => [
      `${path}.${name}`,
      ...fieldsIn(field, `${path}.${name}`),
    ]),
    ...(items ? fieldsIn(items, `${path}[]`) : []),
    ...(typeof values === 'object' ? fieldsIn(values, `${path}.*`) : []),
  ];
};

/** What src/audit pushes to the chain, by kind where it is said, and what a write's line may have. */
const auditFields = (): readonly string[] => {
  const lines = filesOf('src/audit', '.ts').flatMap(({ text }) => {
    const code = scanCode(text);
    return [...callsOf(code, /#(?:push|tell|unwritten\.push)\(|\bJSON\.stringify\(/g)].map(
      ([first = '']) => first,
    );
  });
  const names = lines.flatMap((line) =>
    [...line.matchAll(/(?<=[{,]\s*)([a-z]\w*)(?=\s*[:,}])/g)].map(([, name = '']) => name),
  );
  const kinds = lines.flatMap((line) =>
    [...line.matchAll(/kind: '(\w+)'/g)].map(([, kind = '']) => `kind=${kind}`),
  );
  const contract = readFileSync(join(ROOT, 'src/contracts/audit.ts'), 'utf8');
  const entries = contract.slice(0, contract.indexOf('export interface AuditSink'));
  const fields = [...entries.matchAll(/readonly (\w+)\??:/g)].map(([, name = '']) => name);
  const who = 'caller'; // its fields stand in the line itself
  return sorted([...names, ...kinds, ...fields, 'hash'].filter((name) => name !== who));
};

const LITERAL = /'[^'\n]+'|"[^"\n]+"|`[^`]+`/g;
/** One literal, or several that are put together. */
const LITERALS = new RegExp(
  `(?<!=== )(?:${LITERAL.source})(?:\\s*\\+\\s*(?:${LITERAL.source}))*`,
  'g',
);

const textOf = (literals: string): string =>
  [...literals.matchAll(LITERAL)].map(([literal]) => literal.slice(1, -1)).join('');

/** The event of each line of the log, where it is written out; `${…}` stands for what varies. */
const logEvents = (): readonly string[] =>
  sorted(
    filesOf('src', '.ts')
      .filter(({ path }) => !path.startsWith('cli/'))
      .flatMap(({ text }) =>
        callsOf(scanCode(text), /\b(?:\w*[lL]og|logger)\??\.(?:trace|debug|info|warn|error)\(/g),
      )
      .map(([fields = '', event = '']) => (/^['"`]/.test(fields) ? fields : event))
      .flatMap((event) => [...event.matchAll(LITERALS)].map(([literals]) => textOf(literals)))
      .map((event) => event.replaceAll(/\$\{[^}]*\}/g, '${…}')),
  );

/** The arguments of each call that the pattern begins, as written. */
const callsOf = ({ codeOnly, withStrings }: ScannedCode, begin: RegExp): readonly string[][] =>
  [...codeOnly.matchAll(begin)].map((match) => {
    const cuts = [match.index + match[0].length];
    let depth = 1;
    for (let at = match.index + match[0].length; depth > 0 && at < codeOnly.length; at += 1) {
      const char = codeOnly.charAt(at);
      if ('([{'.includes(char)) depth += 1;
      else if (')]}'.includes(char)) depth -= 1;
      if (depth === 0 || (depth === 1 && char === ',')) cuts.push(at + 1);
    }
    return cuts
      .slice(0, -1)
      .map((from, n) => withStrings.slice(from, (cuts[n + 1] ?? from + 1) - 1).trim());
  });

interface TextFile {
  /** Below the folder. */
  readonly path: string;
  readonly text: string;
}

const filesOf = (folder: string, ending: string): readonly TextFile[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(ROOT, folder, path), 'utf8') }));

const main = (args: readonly string[]): number => {
  const text = `${JSON.stringify(wireNames(), undefined, 2)}\n`;
  if (!args.includes('--check')) {
    writeFileSync(FILE, text);
    return 0;
  }
  if (readFileSync(FILE, 'utf8') === text) return 0;
  process.stderr.write(
    'test/architecture/wire-names.json is stale: see CONTRIBUTING.md, names on the wire\n',
  );
  return 1;
};

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = main(process.argv.slice(2));
