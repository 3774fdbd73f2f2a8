import type { Grants } from '../../contracts/grants.ts';

/** A replica that meets a higher format under a seal does not touch the object. */
export const FORMAT = 1;

export type Reading<T> =
  /**
   * `mended`: the object, if a condition still reports a past problem. `unbound`: the object, if
   * its seal lacks its uid. `asked`: a record that a user asks for and that is not granted yet.
   */
  | {
      readonly kind: 'record';
      readonly record: T;
      readonly asked?: Asked<T>;
      readonly mended?: ResourceObject;
      readonly unbound?: ResourceObject;
      /** Set for kinds with a published status. */
      readonly standing?: StandingObject;
    }
  /** Created or edited by hand: the daemon's part is missing or outdated. */
  | { readonly kind: 'uninitialized'; readonly object: ResourceObject }
  | { readonly kind: 'wrong'; readonly object: ResourceObject; readonly fault: Fault }
  | { readonly kind: 'too-new'; readonly format: number }
  /** In a namespace of no team. */
  | { readonly kind: 'ignored' };

export interface Asked<T> {
  readonly object: ResourceObject;
  readonly record: T;
}

export interface Initialized<T> extends Written {
  readonly record?: Omit<T, 'revision'>;
}

export const standingIn = (reading: Reading<unknown> | undefined): StandingObject | undefined =>
  reading?.kind === 'record' ? reading.standing : undefined;

/** Receives objects of later versions, which this replica must not touch. */
export type OutdatedReport = (object: string, why: string | undefined) => void;

export interface Fault {
  readonly reason: string;
  readonly message: string;
}

/** Metadata, and a spec that matches the schema. */
export interface ResourceObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ResourceMetadata;
  readonly spec: unknown;
  readonly resolved?: unknown;
  readonly status?: ObjectStatus;
}

export interface ObjectStatus {
  readonly conditions?: readonly Condition[];
  readonly [field: string]: unknown;
}

export interface StandingObject {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly status?: ObjectStatus;
}

export interface ResourceMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
}

export interface Written {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec: object;
  readonly resolved?: object;
}

export interface Resource<T> {
  readonly kind: string;
  readonly plural: string;
  place(record: Omit<T, 'revision'>): Place;
  write(record: Omit<T, 'revision'>, before?: ResourceObject): Written;
  read(object: ResourceObject): Reading<T>;
  find(key: string): Place | { readonly labelSelector: string };
  /** Selects objects that must not exist when one is created. */
  readonly unique?: (record: Omit<T, 'revision'>) => string;
  readonly initialize?: (object: ResourceObject) => Initialized<T> | Fault;
  /** Absent if hand-made objects need no grant. */
  readonly grants?: Grants<T>;
}

export interface Place {
  readonly namespace?: string;
  readonly name: string;
}

export const GROUP = 'sandpool.dev';
export const API_VERSION = `${GROUP}/v1alpha1`;

export const collectionPath = (plural: string, namespace?: string): string =>
  namespace === undefined
    ? `/apis/${API_VERSION}/${plural}`
    : `/apis/${API_VERSION}/namespaces/${encodeURIComponent(namespace)}/${plural}`;

export const objectPath = (plural: string, { namespace, name }: Place): string =>
  `${collectionPath(plural, namespace)}/${encodeURIComponent(name)}`;

export const READY = 'Ready';

export const readyOf = ({ status }: ResourceObject): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === READY);

const NOT_READY_REASONS: Readonly<Record<string, readonly string[]>> = {
  SandboxPool: ['Filling', 'Degraded', 'Deleting'],
  SandboxEnv: ['Deleting', 'TemplateNotFound', 'MembersNotReady'],
};

export const verdictIn = (
  kind: string,
  conditions: readonly Condition[] = [],
): Condition | undefined =>
  conditions.find(
    ({ type, status, reason }) =>
      type === READY && status === 'False' && !NOT_READY_REASONS[kind]?.includes(reason),
  );

export const mendedOf = (object: ResourceObject): { readonly mended?: ResourceObject } =>
  verdictIn(object.kind, object.status?.conditions) ? { mended: object } : {};

/** An object of a later format that no daemon of this installation wrote. */
export const laterFormat = (object: ResourceObject, format: number): Reading<never> => ({
  kind: 'wrong',
  object,
  fault: {
    reason: 'LaterFormat',
    message:
      `it has the format ${format}, which this version does not know, and which was not ` +
      'written by a later version of this installation',
  },
});

/** Keeps others' labels, annotations and finalizers. */
export const overwritten = (
  object: ResourceObject,
  { labels, spec, resolved }: Written,
): object => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } },
  spec,
  resolved,
});
