import type { Context } from '../reply/context.ts';
import { invalidArgument, Refusal } from '../../model/refusals.ts';
import type { Clients } from '../limits/clients.ts';

/** Another API accepts such names. */
const POOL_WITH_IMAGE = /^(?:\/v1)?\/sandboxpools\/[^/]+\/\//;

/**
 * 405 if the path has other methods, else 404. A good key gets 400 for a pool name with an image.
 */
export const nothingMatched =
  (clients: Pick<Clients, 'authenticate'>) =>
  async (
    context: Context & { matched?: readonly { readonly methods: readonly string[] }[] },
  ): Promise<never> => {
    const allowed = new Set((context.matched ?? []).flatMap((layer) => layer.methods));
    if (allowed.size > 0) return methodNotAllowed(context, [...allowed]);
    if (!POOL_WITH_IMAGE.test(context.path))
      throw new Refusal('NOT_FOUND', 'there is nothing at this path');
    await clients.authenticate(context.req);
    throw invalidArgument('name', 'must not contain //; an image cannot be named here');
  };

export const methodNotAllowed = (context: Context, allowed: readonly string[]): never => {
  context.set('Allow', allowed.join(', '));
  throw new Refusal('METHOD_NOT_ALLOWED', `${context.method.slice(0, 32)} is not possible here`);
};
