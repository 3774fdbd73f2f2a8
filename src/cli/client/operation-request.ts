import { OPERATIONS, type Operations } from './generated/api.ts';

export type OperationId = keyof Operations;

/** The client does not change it, so it may be read-only. */
type Sent<T> = T extends readonly (infer E)[]
  ? readonly Sent<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Sent<T[K]> }
    : T;

export type Input<K extends OperationId> = {
  readonly [P in keyof Operations[K] as Exclude<P, 'answer'>]: Sent<Operations[K][P]>;
};
export type Query<K extends OperationId> = NonNullable<Part<Input<K>, 'query'>>;
export type Body<K extends OperationId> = NonNullable<Part<Input<K>, 'body'>>;
export type Answer<K extends OperationId> = Operations[K]['answer'];
type Part<T, Name extends string> = T extends { readonly [N in Name]?: infer P } ? P : never;

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object;
  readonly body?: unknown;
}

export interface OperationRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

const NAMES_POOL_OR_ENV = /^\/(?:sandboxpools|envs)\/\{name\}/;

export const operationRequest = <K extends OperationId>(
  id: K,
  input: Input<K> | undefined,
  namespace?: string,
): OperationRequest => {
  const { method, path } = OPERATIONS[id];
  const { params = {}, query = {}, body } = (input ?? {}) as AnyInput;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  return {
    method,
    path: `${filled}${queryText(NAMES_POOL_OR_ENV.test(path) ? { ...query, namespace } : query)}`,
    body,
  };
};

/** A map becomes one parameter per pair. */
const parametersOf = (name: string, value: unknown): readonly [string, string][] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).map(([key, part]) => [`${name}.${key}`, String(part)])
    : [[name, String(value)]];

const queryText = (query: object): string => {
  const given = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => parametersOf(name, value));
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
};
