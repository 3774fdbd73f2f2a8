import type { Grants } from '../../contracts/grants.ts';

/**
 * The format of all objects. A higher one is of a later version: a replica that meets it under a
 * seal keeps its hands off.
 */
export const FORMAT = 1;

/** Describes what one object of a kind says. */
export type Reading<T> =
  /**
   * `mended`: the object, where a condition on it still says that something is wrong. `unbound`:
   * the object, where its seal does not name its uid yet. `asked`: the record as somebody asks for
   * it by hand, where that was not granted yet.
   */
  | {
      readonly kind: 'record';
      readonly record: T;
      readonly asked?: Asked<T>;
      readonly mended?: ResourceObject;
      readonly unbound?: ResourceObject;
      /** Set for a kind whose status is published. */
      readonly standing?: StandingObject;
    }
  /** Made or edited by hand: what a daemon fills in is missing, or no longer true. */
  | { readonly kind: 'uninitialized'; readonly object: ResourceObject }
  | { readonly kind: 'wrong'; readonly object: ResourceObject; readonly fault: Fault }
  /** Written by a later version of this installation, which alone knows what it means. */
  | { readonly kind: 'too-new'; readonly format: number }
  /** In a namespace of no team: somebody else's. */
  | { readonly kind: 'ignored' };

export interface Asked<T> {
  readonly object: ResourceObject;
  readonly record: T;
}

/**
 * An object made by hand, with what is missing of it filled in; `record`: what that says, where it
 * is to be granted first.
 */
export interface Initialized<T> extends Written {
  readonly record?: Omit<T, 'revision'>;
}

export const standingIn = (reading: Reading<unknown> | undefined): StandingObject | undefined =>
  reading?.kind === 'record' ? reading.standing : undefined;

/** Told of an object of a later version that this one must keep its hands off. */
export type OutdatedReport = (object: string, why: string | undefined) => void;

/** Why an object can't be used. */
export interface Fault {
  /** A word in CamelCase, as conditions have it. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Describes what the API server guarantees of an object of ours: its metadata, and a spec that
 * passed the schema.
 */
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

/** An object as it stands, without what it says: enough to write its status. */
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

/** The part of an object that a record is written as. */
export interface Written {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec: object;
  readonly resolved?: object;
}

/** How the records of one kind stand in objects of the API server. */
export interface Resource<T> {
  readonly kind: string;
  readonly plural: string;
  /** Tells where a record's object is. */
  place(record: Omit<T, 'revision'>): Place;
  /** `before`: the object as it stands, where there is one. */
  write(record: Omit<T, 'revision'>, before?: ResourceObject): Written;
  read(object: ResourceObject): Reading<T>;
  /** Tells where the object of a key is, or how it is selected among all. */
  find(key: string): Place | { readonly labelSelector: string };
  /** Selects what else must be unique; none may be there when one is made. */
  readonly unique?: (record: Omit<T, 'revision'>) => string;
  /** Fills in what is missing of an unsettled object. */
  readonly initialize?: (object: ResourceObject) => Initialized<T> | Fault;
  /** By whom what is made or asked for by hand is granted; absent: there is no bound to it. */
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

/** The condition by which an object tells whether it is used. */
export const READY = 'Ready';

export const readyOf = ({ status }: ResourceObject): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === READY);

/** By kind: the reasons for which the status of a usable object says that it is not ready. */
const NOT_READY_REASONS: Readonly<Record<string, readonly string[]>> = {
  SandboxPool: ['Filling', 'Degraded', 'Deleting'],
  SandboxEnv: ['Deleting', 'TemplateNotFound', 'MembersNotReady'],
};

/** Finds the condition by which an object says that it can't be used, or not have what it asks. */
export const verdictIn = (
  kind: string,
  conditions: readonly Condition[] = [],
): Condition | undefined =>
  conditions.find(
    ({ type, status, reason }) =>
      type === READY && status === 'False' && !NOT_READY_REASONS[kind]?.includes(reason),
  );

/** Gives the object where a condition says that it can't be used, while it can. */
export const mendedOf = (object: ResourceObject): { readonly mended?: ResourceObject } =>
  verdictIn(object.kind, object.status?.conditions) ? { mended: object } : {};

/**
 * An object of a later format than this version knows, which no daemon of this installation wrote.
 */
export const laterFormat = (object: ResourceObject, format: number): Reading<never> => ({
  kind: 'wrong',
  object,
  fault: {
    reason: 'LaterFormat',
    message:
      `it has the format ${format}, which this version does not know and no later version ` +
      'of this installation wrote',
  },
});

/** The object with our part of it exchanged; others' labels, annotations and finalizers stay. */
export const overwritten = (
  object: ResourceObject,
  { labels, spec, resolved }: Written,
): object => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } },
  spec,
  resolved,
});
