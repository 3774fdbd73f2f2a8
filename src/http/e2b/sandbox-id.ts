import { isInstanceId, type InstanceId } from '../../model/identifiers.ts';

/** A sandbox as a client of the compatible API names it. */
export interface NamedSandbox {
  readonly id: InstanceId;
  /** Undefined: the cluster that is asked. */
  readonly clusterId: string | undefined;
}

const FORM =
  /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([a-z0-9]{1,25})?$/;

/** An id is a label of a host name, after a port: of what is left of its 63 characters. */
const CLUSTER = /^[a-z0-9]{1,25}$/;

/** Whether sandboxes of a cluster have ids here. */
export const hasCompatibleIds = (clusterId: string): boolean => CLUSTER.test(clusterId);

/** Returns the id as clients of the compatible API have it; `clusterId`: of another cluster. */
export const compatibleId = (id: InstanceId, clusterId = ''): string =>
  id.replaceAll('-', '') + clusterId;

/** Returns the sandbox that such an id, or a UUID, names; undefined where it is neither. */
export const sandboxNamed = (text: string): NamedSandbox | undefined => {
  const digits = FORM.exec(text);
  const id = digits ? digits.slice(1, 6).join('-') : text;
  return isInstanceId(id) ? { id, clusterId: digits?.[6] } : undefined;
};

/** Returns the id as the REST API has it: after a cluster's, where it names one. */
export const restIdOf = ({ id, clusterId }: NamedSandbox): string =>
  clusterId === undefined ? id : `${clusterId}.${id}`;

/** Returns the sandbox of this cluster that it names. */
export const instanceIdOf = (text: string): InstanceId | undefined => {
  const named = sandboxNamed(text);
  return named?.clusterId === undefined ? named?.id : undefined;
};
