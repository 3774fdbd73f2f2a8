/** Parsers return `undefined` for an invalid name. */

/** UUID v7, the sandboxId for life. Lower case, 36 characters. */
export type InstanceId = string & { readonly brand?: 'InstanceId' };

/** The store's version of an object, which every write changes. Compare only for equality. */
export type Revision = string;

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** For JSON Schema. */
export const DNS_LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$';
const DNS_LABEL = new RegExp(DNS_LABEL_PATTERN);

export const isInstanceId = (text: string): text is InstanceId => UUID_V7.test(text);

/** `sb-<uuid>`, the instance's name as a workload. */
export const podNameOf = (id: InstanceId): string => `sb-${id}`;

/** The id need not be a UUID. */
export const idOfPodName = (name: string): InstanceId | undefined =>
  name.startsWith('sb-') ? name.slice('sb-'.length) : undefined;

/** RFC 1123, section 2.1. */
export const isDnsLabel = (text: string): boolean => DNS_LABEL.test(text);

export const DNS_LABEL_FORM = 'must be a DNS-1123 label: 1 to 63 of a-z, 0-9 and inner hyphens';
