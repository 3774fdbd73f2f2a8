import fc from 'fast-check';
import {
  at,
  type DocumentedOperation,
  isObject,
  type Json,
  validatorOf,
} from '../harness/documented-answers.ts';
import type { HttpAnswer } from '../harness/http-client.ts';
import { Dice, hostileBody, hostileSegment, hostileValue } from './hostile-values.ts';
import { valuesOf } from './schema-values.ts';

export interface GeneratedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly raw: Buffer | undefined;
  /** `forbidden`: the document rules the body out. `odd`: anything. */
  readonly kind: 'valid' | 'forbidden' | 'odd';
}

type Values = Readonly<Record<string, readonly [string, ...string[]]>>;

/** Names of existing things, by path parameter and field. */
export interface Known {
  readonly path: Values;
  readonly fields: Readonly<Record<string, readonly [unknown, ...unknown[]]>>;
}

/**
 * Requests to an operation, made from the document. About a third are valid, the others nearly
 * valid: with parts that are out of bounds, of another type, unknown, repeated or no text.
 */
export const requestsTo = (
  operation: DocumentedOperation,
  known: Known,
  { seed, count }: { readonly seed: number; readonly count: number },
): readonly GeneratedRequest[] => {
  const dice = new Dice(seed);
  const parts = partsOf(operation, known);
  return fc
    .sample(parts, { seed, numRuns: count })
    .map((good) => request(operation, knowing(good, known.fields, dice), dice));
};

/** Bounds of quantities and durations, port names, and combinations. */
const POOL_SOURCE = [
  'templateName',
  'template',
  'instanceType',
  'multiplier',
  'cpu',
  'memory',
  'inlineResources',
  'overrides',
  'minReplicas',
  'maxReplicas',
  'replicas',
];

/** Refused with 400 although the schema, which can't express it, permits it. */
const BEYOND_SCHEMA: Readonly<Record<string, readonly string[]>> = {
  setIdleTimeout: ['idleTimeout', 'idleTimeoutSeconds'],
  claimSandbox: ['idleTimeout', 'poolName', 'files'],
  createApiKey: ['expiresAt', 'clusterID'],
  createApiKeyForTenant: ['expiresAt', 'clusterID'],
  listActors: ['cursor'],
  listAudit: ['cursor'],
  getActor: ['replica', 'key'],
  rebuildActor: ['replica', 'key'],
  followActor: ['key'],
  getQueues: ['replica'],
  getDriver: ['replica'],
  getReflectors: ['replica'],
  // no finished sandboxes by metadata; no other cluster than poolName's
  listSandboxes: ['poolName', 'phase', 'clusterID'],
  getSandboxLogs: ['container'],
  execInSandbox: ['container'],
  startProcess: ['cols', 'rows', 'container', 'cwd'],
  resizeProcess: ['tty'],
  writeToProcess: ['data'],
  createPool: POOL_SOURCE,
  updatePool: POOL_SOURCE,
  createEnv: ['overrides', 'clusterID'],
  replaceEnv: ['overrides', 'name'],
  patchEnv: ['overrides', 'labels', 'annotations'],
  addMember: [...POOL_SOURCE, 'scalingGroup'],
  updateMember: [...POOL_SOURCE, 'scalingGroup'],
  updateGroup: ['minReplicas'],
  createTemplate: ['crdJson'],
  updateTemplate: ['crdJson'],
  setQuotasOf: ['cpu', 'memory'],
  // no pattern expresses valid names that also fits their base64
  readFile: ['path', 'container'],
  writeFile: ['path', 'container', 'If-None-Match'],
  removeFile: ['path', 'container'],
  listFiles: ['path', 'container', 'cursor'],
  moveFile: ['from', 'to', 'container'],
  makeFolder: ['path', 'container'],
  watchFiles: ['path', 'container'],
  // the daemon has no manager
  setManagers: ['cutOff'],
};

/**
 * A valid request that was refused as malformed, or a forbidden one that was accepted. The client
 * checks the answer itself.
 */
export const contradiction = (
  { operation }: DocumentedOperation,
  { kind, target, raw }: GeneratedRequest,
  { status, json, text }: HttpAnswer,
): string | undefined => {
  if (kind === 'forbidden' && status < 400) return `the document forbids ${String(raw)}`;
  if (kind !== 'valid' || !MALFORMED.has(status)) return undefined;
  const beyond = [
    ...(BEYOND_SCHEMA[String(operation['operationId'])] ?? []),
    // a full name contradicts another namespace beside it
    ...(/%2F.*[?&]namespace=/i.test(target) ? ['namespace'] : []),
  ];
  const named = String(json.detail?.['field']);
  const within = (field: string): boolean =>
    named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`);
  return status === 400 && beyond.some(within)
    ? undefined
    : `the document allows ${target} ${String(raw)}, answered ${text}`;
};

const MALFORMED: ReadonlySet<number> = new Set([400, 405, 413, 415, 431]);

interface Good {
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** Most references name existing things. */
const knowing = (good: Good, fields: Known['fields'], dice: Dice): Good => {
  const filled = (object: Json): Json =>
    Object.fromEntries(
      Object.entries(object).map(([name, value]) => {
        const values = fields[name];
        return [name, values && dice.chance(0.8) ? dice.pick(values) : value];
      }),
    );
  return {
    ...good,
    query: filled(good.query),
    body: isObject(good.body) ? filled(good.body) : good.body,
  };
};

/** Full bodies are rarely valid, so every second one has little more than required fields. */
const lean = (body: unknown, schema: Json | undefined, dice: Dice): unknown => {
  if (!isObject(body) || dice.chance(0.5)) return body;
  const required = Array.isArray(schema?.['required']) ? schema['required'] : [];
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => required.includes(name) || dice.chance(0.2)),
  );
};

const partsOf = ({ operation, path }: DocumentedOperation, known: Known): fc.Arbitrary<Good> => {
  const parameters = (Array.isArray(operation['parameters']) ? operation['parameters'] : []).map(
    (parameter: Json) =>
      typeof parameter['$ref'] === 'string' ? (at(parameter['$ref'].slice(1)) ?? {}) : parameter,
  );
  const among = (where: string): fc.Arbitrary<Record<string, unknown>> => {
    const those = parameters.filter((parameter) => parameter['in'] === where);
    const values = Object.fromEntries(
      those.map((parameter) => [
        String(parameter['name']),
        isObject(parameter['schema']) ? valuesOf(parameter['schema']) : fc.string(),
      ]),
    );
    return fc.record(values, {
      requiredKeys: those
        .filter((parameter) => parameter['required'] === true)
        .map((parameter) => String(parameter['name'])),
      noNullPrototype: true,
    });
  };
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const schema = bodySchemaOf(operation);
  return fc.record({
    path: fc.record(
      Object.fromEntries(
        names.map((name) => [name, fc.constantFrom(...(known.path[name] ?? ['none']))]),
      ),
      { noNullPrototype: true },
    ),
    query: among('query'),
    headers: among('header'),
    body: schema ? valuesOf(schema) : fc.constant(undefined),
  });
};

const request = (documented: DocumentedOperation, good: Good, dice: Dice): GeneratedRequest => {
  const valid = dice.chance(0.35);
  const schema = bodySchemaOf(documented.operation);
  const path = documented.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    valid || dice.chance(0.7) ? encodeURIComponent(good.path[name] ?? '') : hostileSegment(dice),
  );
  const raw = bodyBytes({ schema, value: lean(good.body, schema, dice), valid }, dice);
  const method =
    valid || dice.chance(0.98)
      ? documented.method
      : dice.pick(['PATCH', 'OPTIONS', 'POST', 'GET', 'PUT', 'DELETE']);
  return {
    method,
    target: `${path}${queryText(good.query, valid, dice)}`,
    headers: headersOf(good.headers, valid, dice),
    raw: raw.bytes,
    kind: valid ? 'valid' : raw.forbidden && method === documented.method ? 'forbidden' : 'odd',
  };
};

const queryText = (good: Good['query'], valid: boolean, dice: Dice): string => {
  const pairs = Object.entries(good)
    .flatMap(parametersOf)
    .map(([name, value]): [string, string] => [
      encodeURIComponent(name),
      valid || dice.chance(0.5) ? encodeURIComponent(String(value)) : oddValue(dice),
    ]);
  if (!valid && dice.chance(0.2)) pairs.push([hostileSegment(dice), hostileSegment(dice)]);
  if (!valid && pairs[0] && dice.chance(0.1)) pairs.push(pairs[0]);
  return pairs.length === 0
    ? ''
    : `?${pairs.map(([name, value]) => `${name}=${value}`).join(valid ? '&' : dice.pick(['&', '&', '&', '&&', ';']))}`;
};

/** `style: deepObject` has a parameter per pair. */
const parametersOf = ([name, value]: [string, unknown]): readonly (readonly [string, unknown])[] =>
  isObject(value)
    ? Object.entries(value).map(([key, each]) => [`${name}[${key}]`, each] as const)
    : [[name, value]];

const oddValue = (dice: Dice): string =>
  dice.chance(0.5)
    ? hostileSegment(dice)
    : dice.pick([
        '',
        '-1',
        '0',
        '1001',
        '1e3',
        '0x10',
        '999999999',
        '9999999999',
        '1.5',
        '%201',
        'TRUE',
        '1,2',
        'nothing',
      ]);

const headersOf = (good: Good['headers'], valid: boolean, dice: Dice): Record<string, string> => {
  const headers = Object.fromEntries(
    Object.entries(good).map(([name, value]) => [
      name,
      headerText(
        valid || dice.chance(0.7)
          ? String(value)
          : dice.pick(['', ' ', '"', '*', 'y'.repeat(500), '\u00ff'.repeat(40)]),
      ),
    ]),
  );
  if (valid) return headers;
  if (dice.chance(0.1))
    headers['Content-Type'] = dice.pick([
      'text/plain',
      'application/json; charset=utf-7',
      '\u00e9',
      'application/json;;',
      '',
    ]);
  if (dice.chance(0.05)) headers['Content-Encoding'] = dice.pick(['gzip', 'identity', 'x']);
  if (dice.chance(0.1))
    headers['Accept'] = dice.pick([
      'text/plain',
      '*/*;q=0',
      'x',
      ',,,',
      'text/html, application/json;q=0.1',
    ]);
  if (dice.chance(0.05))
    headers['SERVICE-API-KEY'] = dice.pick([
      '',
      'spk_',
      'spk_aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',
      '\u00ff'.repeat(100),
      'x'.repeat(10_000),
    ]);
  return headers;
};

/** The client library sends nothing else in headers. */
const headerText = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?');

const bodyBytes = (
  {
    schema,
    value,
    valid,
  }: { readonly schema: Json | undefined; readonly value: unknown; readonly valid: boolean },
  dice: Dice,
): { readonly bytes: Buffer | undefined; readonly forbidden: boolean } => {
  if (!schema)
    return {
      bytes: !valid && dice.chance(0.1) ? hostileBody(dice, {}) : undefined,
      forbidden: false,
    };
  if (valid) return { bytes: Buffer.from(JSON.stringify(value)), forbidden: false };
  const good = isObject(value) ? value : {};
  if (dice.chance(0.3)) return { bytes: hostileBody(dice, good), forbidden: false };
  const changed = oneThingChanged(good, schema, dice);
  return { bytes: Buffer.from(JSON.stringify(changed)), forbidden: !fits(schema, changed) };
};

/** Removes a field, changes its type, breaks its bounds, or adds one. */
const oneThingChanged = (good: Json, schema: Json, dice: Dice): Json => {
  const names = Object.keys(isObject(schema['properties']) ? schema['properties'] : {});
  const name = names[dice.below(names.length)];
  if (name === undefined || dice.chance(0.15))
    return { ...good, [dice.pick(['x', 'Name', 'pool_name', '', 'é'])]: hostileValue(dice) };
  if (dice.chance(0.2))
    return Object.fromEntries(Object.entries(good).filter(([each]) => each !== name));
  return { ...good, [name]: hostileValue(dice) };
};

const fits = (schema: Json, value: unknown): boolean =>
  validatorOf(schema, 'open')(JSON.parse(JSON.stringify(value)));

const bodySchemaOf = (operation: Json): Json | undefined => {
  const body = operation['requestBody'];
  const content = isObject(body) ? body['content'] : undefined;
  const media = isObject(content) ? content['application/json'] : undefined;
  const schema = isObject(media) ? media['schema'] : undefined;
  if (!isObject(schema)) return undefined;
  return typeof schema['$ref'] === 'string' ? at(schema['$ref'].slice(1)) : schema;
};
