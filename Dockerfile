# One image for every process of a deployment: api, worker, dispatcher, migrate (see docker-compose.yml).

# Any image of Python 3.11 to 3.15 will do.
ARG PYTHON_IMAGE=python:3.14-slim

FROM ${PYTHON_IMAGE} AS builder
COPY requirements/runtime.lock /tmp/runtime.lock
# With hashes, so that the tested packages are installed. Wheels only: the slim image has no compiler. The base's own pip installs,
# so that the environment that is copied has none.
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --no-cache-dir --only-binary :all: --require-hashes \
        -r /tmp/runtime.lock
# Parts that no process of ours loads: the packages' own tests, headers, and Arrow's clients of Flight and S3.
RUN cd /opt/venv/lib/python3*/site-packages \
    && find numba numpy pyarrow scipy sklearn -type d -name tests -prune -exec rm -r {} + \
    && rm -r pyarrow/include pyarrow/src pyarrow/flight.py pyarrow/*_flight.* pyarrow/*_s3*
COPY docs/openapi.json /tmp/docs/openapi.json
COPY client /tmp/client
RUN python /tmp/client/make_modules.py

FROM ${PYTHON_IMAGE}
# PYTHONSAFEPATH: no process imports from its current folder.
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/app \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    RANKWRIGHT_KERNEL_CPU=x86-64-v3,x86-64-v2,aarch64 \
    RANKWRIGHT_KERNEL_CACHE=/opt/kernels:/var/lib/rankwright/kernels \
    RANKWRIGHT_STATE_DIR=/var/lib/rankwright

# A number, so that an orchestrator can see that it is not root. The volume that is mounted over the state folder
# takes its owner from here.
RUN groupadd --gid 10001 rankwright \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/rankwright --no-create-home --shell /usr/sbin/nologin rankwright \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/rankwright

COPY --from=builder /opt/venv /opt/venv
COPY LICENSE /app/LICENSE
COPY --from=builder /tmp/client/rankwright /app/rankwright
COPY core /app/core
COPY app /app/app
COPY migrations /app/migrations
COPY workers /app/workers
COPY --chmod=0755 deploy/rankwright /usr/local/bin/rankwright
RUN python -m compileall -q /app

WORKDIR /var/lib/rankwright

# Compile every kernel, once for each level of processors in RANKWRIGHT_KERNEL_CPU, whatever processor builds the image.
# A container loads them. On a processor below all levels it compiles for itself, into the state folder.
RUN python -m workers.compile --every-level

USER 10001:10001

EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["rankwright", "--help"]

# The build. It stands at the end, so that another build shares all layers before.
ARG BUILD=unknown
ENV RANKWRIGHT_BUILD=${BUILD}
LABEL org.opencontainers.image.revision=${BUILD}
