import { isInstanceId, type InstanceId } from '../../model/identifiers.ts';

export interface NamedSandbox {
  readonly id: InstanceId;
  readonly clusterId: string | undefined;
}

const FORM =
  /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([a-z0-9]{1,25})?$/;

/** Id and port share a label of a host name: 25 of 63 characters remain. */
const CLUSTER = /^[a-z0-9]{1,25}$/;

export const hasCompatibleIds = (clusterId: string): boolean => CLUSTER.test(clusterId);

/** `clusterId` is set for another cluster. */
export const compatibleId = (id: InstanceId, clusterId = ''): string =>
  id.replaceAll('-', '') + clusterId;

export const sandboxNamed = (text: string): NamedSandbox | undefined => {
  const digits = FORM.exec(text);
  const id = digits ? digits.slice(1, 6).join('-') : text;
  return isInstanceId(id) ? { id, clusterId: digits?.[6] } : undefined;
};

export const restIdOf = ({ id, clusterId }: NamedSandbox): string =>
  clusterId === undefined ? id : `${clusterId}.${id}`;

export const instanceIdOf = (text: string): InstanceId | undefined => {
  const named = sandboxNamed(text);
  return named?.clusterId === undefined ? named?.id : undefined;
};
