import { invalidArgument } from '../../../model/refusals.ts';
import type { NewSandboxBody } from './schema.ts';

type Asked = Pick<NewSandboxBody, 'allow_internet_access' | 'network'>;

/**
 * Returns the field by which a creation asks for a sandbox without a network; undefined if the
 * network of the pool will do. Refuses what no pool can enforce, and says what holds instead.
 */
export const fieldThatClosesNetwork = (
  { allow_internet_access: internet, network }: Asked,
  { openPorts }: { readonly openPorts: boolean },
): string | undefined => {
  const { allowPublicTraffic, denyOut, ...others } = network ?? {};
  const [wrong] = Object.entries(others).find(([, value]) => !isEmpty(value)) ?? [];
  if (wrong !== undefined)
    throw invalidArgument(
      `network.${wrong}`.slice(0, 64),
      'is not possible here: a sandbox has the network of its pool, the whole one of its host or ' +
        'none',
    );
  if (typeof allowPublicTraffic === 'boolean' && allowPublicTraffic !== openPorts)
    throw invalidArgument('network.allowPublicTraffic', openPorts ? ARE_OPEN : ARE_CLOSED);
  if (internet === false) return 'allow_internet_access';
  return denyOut?.length ? 'network.denyOut' : undefined;
};

const ARE_OPEN =
  'must be true here: ports of sandboxes are open to everyone who knows an id ' +
  '(compatibleApi.openPorts: on)';
const ARE_CLOSED =
  'must be false here: ports of sandboxes ask for the header E2B-Traffic-Access-Token ' +
  '(compatibleApi.openPorts: off)';

/** Whether a field means nothing. */
export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'object' && Object.keys(value).length === 0);
