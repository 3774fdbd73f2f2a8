import type { IncomingMessage } from 'node:http';

/** Target of a request to an endpoint. */
export interface EndpointTarget {
  readonly sandboxId: string;
  readonly endpointName: string;
  /** Path up to the endpoint's name. */
  readonly prefix: string;
  /** Path and query for the sandbox. */
  readonly path: string;
}

const FORM = /^((?:\/v1)?\/sandboxes\/([^/?]+)\/endpoints\/([^/?]+))(\/[^?]*)?(\?.*)?$/;

/**
 * Parses a target; undefined if the path is not an endpoint's. Decodes nothing: names hold no
 * escapes, and the rest belongs to the sandbox.
 */
export const readTarget = (url: string): EndpointTarget | undefined => {
  const match = url.includes('/endpoints/') ? FORM.exec(url) : undefined;
  if (!match) return undefined;
  const [, prefix = '', sandboxId = '', endpointName = '', path = '/', query = ''] = match;
  return { sandboxId, endpointName, prefix, path: path + query };
};

export const isForEndpoint = ({ url = '' }: Pick<IncomingMessage, 'url'>): boolean =>
  readTarget(url) !== undefined;
