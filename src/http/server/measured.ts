import type { Metrics } from '../../contracts/metrics.ts';
import type { Note } from './notes.ts';

/**
 * Counts and times requests by the template of their route: no path that a client has made up, no
 * method either. A HEAD counts as the GET that it is.
 */
export const measured =
  (metrics: Metrics): Note =>
  (context, tookMs) => {
    const { route } = context.state;
    const which =
      route === undefined
        ? NONE
        : { method: context.method === 'HEAD' ? 'GET' : context.method, route };
    metrics.count('sandpool_http_requests_total', { ...which, status: String(context.status) });
    metrics.observe('sandpool_http_seconds', which, tookMs / 1_000);
  };

const NONE = { method: 'other', route: 'none' };
