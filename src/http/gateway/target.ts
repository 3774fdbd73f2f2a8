import type { IncomingMessage } from 'node:http';

/** Where a request to an endpoint leads. */
export interface EndpointTarget {
  readonly sandboxId: string;
  readonly endpointName: string;
  /** Says what stands before the sandbox's own paths. */
  readonly prefix: string;
  /** Path and query as the sandbox gets them. */
  readonly path: string;
}

const FORM = /^((?:\/v1)?\/sandboxes\/([^/?]+)\/endpoints\/([^/?]+))(\/[^?]*)?(\?.*)?$/;

/**
 * Undefined where the path is no endpoint's. Nothing of it is decoded: names hold no escapes, and
 * the rest is the sandbox's own.
 */
export const readTarget = (url: string): EndpointTarget | undefined => {
  const match = url.includes('/endpoints/') ? FORM.exec(url) : undefined;
  if (!match) return undefined;
  const [, prefix = '', sandboxId = '', endpointName = '', path = '/', query = ''] = match;
  return { sandboxId, endpointName, prefix, path: path + query };
};

/** Whether a request is for an endpoint of a sandbox. */
export const isForEndpoint = ({ url = '' }: Pick<IncomingMessage, 'url'>): boolean =>
  readTarget(url) !== undefined;
