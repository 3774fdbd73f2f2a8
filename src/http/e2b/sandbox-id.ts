import { isInstanceId, type InstanceId } from '../../model/identifiers.ts';

/** A sandbox's id in the compatible API, parsed. */
export interface NamedSandbox {
  readonly id: InstanceId;
  /** Undefined for the requested cluster. */
  readonly clusterId: string | undefined;
}

const FORM =
  /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([a-z0-9]{1,25})?$/;

/**
 * The id and a port share one label of a host name, so the cluster's id gets the rest of 63
 * characters.
 */
const CLUSTER = /^[a-z0-9]{1,25}$/;

/** Whether a cluster's sandboxes can have ids in the compatible API. */
export const hasCompatibleIds = (clusterId: string): boolean => CLUSTER.test(clusterId);

/** Formats an id for the compatible API; `clusterId` is set for another cluster. */
export const compatibleId = (id: InstanceId, clusterId = ''): string =>
  id.replaceAll('-', '') + clusterId;

/** Parses such an id or a UUID; undefined if the text is neither. */
export const sandboxNamed = (text: string): NamedSandbox | undefined => {
  const digits = FORM.exec(text);
  const id = digits ? digits.slice(1, 6).join('-') : text;
  return isInstanceId(id) ? { id, clusterId: digits?.[6] } : undefined;
};

/** Formats an id for the REST API, prefixed with the cluster's id if there is one. */
export const restIdOf = ({ id, clusterId }: NamedSandbox): string =>
  clusterId === undefined ? id : `${clusterId}.${id}`;

/** Parses an id of this cluster; undefined for any other. */
export const instanceIdOf = (text: string): InstanceId | undefined => {
  const named = sandboxNamed(text);
  return named?.clusterId === undefined ? named?.id : undefined;
};
